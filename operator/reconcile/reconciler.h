#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "operator/children/settings.h"
#include "operator/controller/controller.h"
#include "operator/kube/client.h"
#include "operator/kube/event_recorder.h"
#include "operator/reconcile/certificates.h"
#include "operator/reconcile/heads.h"
#include "operator/reconcile/stores.h"

namespace hetero::reconcile {

// One pass over one job: read the stores, MakePlan, write the status, carry the effects out, send
// events. Safe for different keys at once.
class Reconciler {
 public:
  struct Options {
    children::Settings settings;
    int parallelism = 50;                                      // API calls of one job at once
    base::Duration progress_period = std::chrono::seconds(5);  // per job
    double progress_writes_per_second = 20;                    // of the operator
  };
  // Metrics: hetero_jobs{state}, hetero_job_startup_seconds,
  // hetero_job_restarts_total{scope,reason}.
  Reconciler(kube::Client& client, base::Clock& clock, metrics::Registry& registry, Stores stores,
             kube::EventRecorder& events, Heads& heads, const OperatorIdentity& identity,
             Options options);
  ~Reconciler();

  // `key` is "namespace/name". A job that is gone closes its stream and drops what is remembered of
  // it.
  absl::StatusOr<controller::Controller::Result> Reconcile(const std::string& key,
                                                           std::stop_token stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hetero::reconcile
