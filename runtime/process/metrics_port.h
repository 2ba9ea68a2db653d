#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/http_endpoint.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "hetero/v1/membership.pb.h"
#include "hetero/v1/status.pb.h"
#include "runtime/insight/report.h"
#include "runtime/process/gpu_readings.h"

namespace hetero::process {

// The HTTP port of a process of a job: /metrics (docs/metrics.md), /healthz, /readyz. A process
// updates it as what it is: CPU worker, rank or head. Thread-safe.
class MetricsPort {
 public:
  // `address` is "host:port", port 0 for a free one; empty gives null: no port. Errors name the
  // address. Readings of this machine's GPUs are served too, where `nvml` can be loaded.
  static absl::StatusOr<std::unique_ptr<MetricsPort>> Open(
      const std::string& address, base::Clock& clock, const char* nvml = GpuReadings::kLibrary);

  // Until then /readyz answers 503.
  void SetReady();
  // The names of the entries of spec.pipeline, in order; without them no operator has figures.
  void SetOperators(std::vector<std::string> operators);
  // What the job may cost, in dollars.
  void SetBudget(double dollars);

  void UpdateWorker(const v1::Heartbeat& heartbeat);
  // A rank may have no progress yet.
  void UpdateRank(const v1::Heartbeat& heartbeat);
  // A step of this rank that took `seconds`, waiting for data included. Never waits.
  void ObserveStep(double seconds);
  // The head's view of the job, which is ready by that.
  void UpdateJob(const v1::JobStatus& status);
  // What the status does not say. Costly to make: now and then is enough.
  void UpdateReport(const insight::Report& report);

  int port() const { return endpoint_.port(); }

 private:
  MetricsPort(base::Clock& clock, const char* nvml);
  void UpdateGpus() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UpdateCheckpoint(const v1::Progress& progress) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UpdateFindings(const v1::JobStatus& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  base::Clock& clock_;
  metrics::Registry registry_;
  metrics::HttpEndpoint endpoint_;
  const std::unique_ptr<GpuReadings> gpus_;  // null without a driver
  base::Mutex mutex_;                        // also from reading a counter until it is raised
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::string> operators_ ABSL_GUARDED_BY(mutex_);
  int64_t checkpoint_step_ ABSL_GUARDED_BY(mutex_) = 0;  // of the newest that was told; 0: none
  std::set<std::string> rules_ ABSL_GUARDED_BY(mutex_);  // that have ever found something
};

}  // namespace hetero::process
