#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/http_endpoint.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "hetero/v1/membership.pb.h"
#include "hetero/v1/status.pb.h"
#include "runtime/process/gpu_readings.h"

namespace hetero::process {

// The HTTP port of a process of a job: /metrics, /healthz, /readyz. Thread-safe.
class MetricsPort {
 public:
  // `address` is "host:port", port 0 for a free one; empty gives null: no port. Errors name the
  // address. Readings of this machine's GPUs are served too, where `nvml` can be loaded.
  static absl::StatusOr<std::unique_ptr<MetricsPort>> Open(
      const std::string& address, const char* nvml = GpuReadings::kLibrary);

  // Until then /readyz answers 503.
  void SetReady();
  // A member's totals and, for a rank, its progress.
  void Update(const v1::Heartbeat& heartbeat);
  // The head's view of the job.
  void Update(const v1::JobStatus& status);
  int port() const { return endpoint_.port(); }

 private:
  explicit MetricsPort(const char* nvml) : endpoint_(registry_), gpus_(GpuReadings::Open(nvml)) {}
  void UpdateProgress(const v1::Progress& progress) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UpdateGpus() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  metrics::Registry registry_;
  metrics::HttpEndpoint endpoint_;
  const std::unique_ptr<GpuReadings> gpus_;  // null without a driver
  base::Mutex mutex_;                        // also from reading a counter until it is raised
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hetero::process
