#pragma once

#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "operator/controller/controller.h"
#include "operator/kube/client.h"
#include "operator/program/options.h"
#include "operator/reconcile/head_follower.h"
#include "operator/reconcile/reconciler.h"

namespace hetero::program {

// Reconciles jobs while this process leads. Keys may come before that: they wait.
class JobWorker {
 public:
  // All outlive the worker.
  JobWorker(const OperatorOptions& options, kube::Client& client, kube::Client& event_client,
            base::Clock& clock, metrics::Registry& registry);

  // The job is to be looked at. Safe from any thread; returns at once.
  void Enqueue(const std::string& key) { controller_.queue().Add(key); }
  // Blocks until stop and until the reconciles that run then have ended. Call once.
  void Run(const reconcile::Stores& stores, const reconcile::OperatorIdentity& identity,
           std::stop_token stop);
  // Heads that are dialled from now on are shown this certificate. Safe from any thread.
  void UseCertificate(const reconcile::OperatorIdentity& renewed);

 private:
  void SetHeads(reconcile::HeadFollower* heads);

  const OperatorOptions& options_;
  kube::Client& client_;
  kube::Client& event_client_;
  base::Clock& clock_;
  metrics::Registry& registry_;
  reconcile::Reconciler* reconciler_ = nullptr;  // set while the controller runs
  base::Mutex mutex_;
  reconcile::HeadFollower* heads_ ABSL_GUARDED_BY(mutex_) = nullptr;  // set while Run() does
  controller::Controller controller_;
};

}  // namespace hetero::program
