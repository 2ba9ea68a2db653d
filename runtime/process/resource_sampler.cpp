#include "runtime/process/resource_sampler.h"

#include <algorithm>
#include <utility>

#include "base/thread.h"
#include "runtime/head/resource_point.h"

namespace hetero::process {
namespace {

constexpr double kShortest = 1e-3;  // seconds, of a point

}  // namespace

ResourceSampler::ResourceSampler(Options options, base::Clock& clock)
    : options_(options), clock_(clock), sampled_at_(clock.Now()) {
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

ResourceSampler::~ResourceSampler() = default;

void ResourceSampler::Run(const std::stop_token& stop) {
  base::SetThreadName("sampler");
  // Loading the driver's library takes a while, and nobody waits for it.
  std::unique_ptr<GpuReadings> gpus;
  if (options_.reads_gpus) gpus = GpuReadings::Open(options_.nvml);
  {
    const base::MutexLock lock(mutex_);
    gpus_ = std::move(gpus);
  }
  do {
    const base::MutexLock lock(mutex_);
    Sample();
  } while (clock_.SleepFor(options_.interval, stop));
}

void ResourceSampler::Sample() {
  const base::Instant now = clock_.Now();
  const double seconds = std::max(base::ToSeconds(now - sampled_at_), kShortest);
  sampled_at_ = now;
  insight::UsePoint point = meter_.Next(reader_.Read(), seconds);
  // Whoever sets the machine's clock back makes no point older than the one before.
  newest_ns_ = std::max(
      newest_ns_ + 1,
      std::chrono::duration_cast<base::Duration>(clock_.WallNow().time_since_epoch()).count());
  point.unix_ns = newest_ns_;
  if (gpus_ != nullptr) {
    for (const GpuReading& gpu : gpus_->Take()) {
      if (point.gpus.size() == head::kMostGpus) break;
      point.gpus.push_back({.index = gpu.index,
                            .utilization = gpu.utilization,
                            .memory_used_bytes = gpu.memory_used_bytes,
                            .memory_total_bytes = gpu.memory_total_bytes,
                            .power_watts = gpu.power_watts});
    }
  }
  points_.Add(point);
}

void ResourceSampler::Take(bool until_now, v1::Heartbeat& heartbeat) {
  const base::MutexLock lock(mutex_);
  if (until_now && clock_.Now() > sampled_at_) Sample();
  for (const insight::UsePoint& point : points_.points()) {
    head::WritePoint(point, heartbeat.add_resources());
  }
  points_ = insight::UseSeries(kMostPoints);
}

}  // namespace hetero::process
