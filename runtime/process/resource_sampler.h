#pragma once

#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/resource_use.h"
#include "hetero/v1/membership.pb.h"
#include "runtime/insight/resource_use.h"
#include "runtime/process/gpu_readings.h"
#include "runtime/process/resource_meter.h"

namespace hetero::process {

// Looks twice a second at what this process and its machine use, until a heartbeat takes it; the
// first point is of all that the process did before. Thread-safe. Costs less than a 200th of a core
// with 64 threads (docs/performance.md). The destructor joins its thread.
class ResourceSampler {
 public:
  struct Options {
    base::Duration interval = std::chrono::milliseconds(500);
    bool reads_gpus = false;  // of the machine, where there is a driver
    const char* nvml = GpuReadings::kLibrary;
  };
  // While nobody takes them: longer ones, and none is lost.
  static constexpr size_t kMostPoints = 240;

  ResourceSampler(Options options, base::Clock& clock);
  ~ResourceSampler();

  // Adds what is new since the last call to `heartbeat.resources`. With `until_now`, up to this
  // moment, however short the last point is; that one is without GPUs.
  void Take(bool until_now, v1::Heartbeat& heartbeat);

 private:
  void Run(const std::stop_token& stop);
  void Sample(std::vector<insight::GpuPoint> gpus) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  base::Clock& clock_;
  base::Mutex mutex_;
  base::ResourceReader reader_ ABSL_GUARDED_BY(mutex_);
  ResourceMeter meter_ ABSL_GUARDED_BY(mutex_);
  base::Instant sampled_at_ ABSL_GUARDED_BY(mutex_);
  int64_t newest_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  insight::UseSeries points_ ABSL_GUARDED_BY(mutex_){kMostPoints};
  std::jthread thread_;  // last: uses all of the above
};

}  // namespace hetero::process
