#include "runtime/process/resource_sampler.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/thread.h"
#include "runtime/head/resource_point.h"

namespace hetero::process {
namespace {

constexpr double kShortest = 1e-3;  // seconds, of a point

std::vector<insight::GpuPoint> ReadGpus(const GpuReadings* driver) {
  std::vector<insight::GpuPoint> gpus;
  if (driver == nullptr) return gpus;
  for (const GpuReading& gpu : driver->Take()) {
    if (gpus.size() == head::kMostGpus) break;
    gpus.push_back({.index = gpu.index,
                    .utilization = gpu.utilization,
                    .memory_used_bytes = gpu.memory_used_bytes,
                    .memory_total_bytes = gpu.memory_total_bytes,
                    .power_watts = gpu.power_watts});
  }
  return gpus;
}

}  // namespace

ResourceSampler::ResourceSampler(Options options, base::Clock& clock)
    : options_(options), clock_(clock), sampled_at_(clock.Now()) {
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

ResourceSampler::~ResourceSampler() = default;

void ResourceSampler::Run(const std::stop_token& stop) {
  base::SetThreadName("sampler");
  // The driver may take a while; nobody waits for it.
  std::unique_ptr<GpuReadings> driver;
  if (options_.reads_gpus) driver = GpuReadings::Open(options_.nvml);
  do {
    std::vector<insight::GpuPoint> gpus = ReadGpus(driver.get());
    const base::MutexLock lock(mutex_);
    Sample(std::move(gpus));
  } while (clock_.SleepFor(options_.interval, stop));
}

void ResourceSampler::Sample(std::vector<insight::GpuPoint> gpus) {
  const base::Instant now = clock_.Now();
  const double seconds = std::max(base::ToSeconds(now - sampled_at_), kShortest);
  sampled_at_ = now;
  insight::UsePoint point = meter_.Next(reader_.Read(), seconds);
  // Whoever sets the machine's clock back makes no point older than the one before.
  newest_ns_ = std::max(
      newest_ns_ + 1,
      std::chrono::duration_cast<base::Duration>(clock_.WallNow().time_since_epoch()).count());
  point.unix_ns = newest_ns_;
  point.gpus = std::move(gpus);
  points_.Add(point);
}

void ResourceSampler::Take(bool until_now, v1::Heartbeat& heartbeat) {
  const base::MutexLock lock(mutex_);
  if (until_now && clock_.Now() > sampled_at_) Sample({});
  for (const insight::UsePoint& point : points_.points()) {
    head::WritePoint(point, heartbeat.add_resources());
  }
  points_ = insight::UseSeries(kMostPoints);
}

}  // namespace hetero::process
