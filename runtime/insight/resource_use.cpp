#include "runtime/insight/resource_use.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace hetero::insight {
namespace {

// Points of a thinned series need not be this much of the mean's length to count as whole.
constexpr double kWholeShare = 0.99;

double Mean(double a, double a_span, double b, double b_span) {
  const double both = a_span + b_span;
  return both > 0 ? (a * a_span + b * b_span) / both : b;
}

// What is known of one span alone stands for both.
std::optional<double> Mean(std::optional<double> a, double a_span, std::optional<double> b,
                           double b_span) {
  if (!a || !b) return a ? a : b;
  return Mean(*a, a_span, *b, b_span);
}

void Add(const SecondsByGroup& from, SecondsByGroup& to) {
  for (size_t i = 0; i < kThreadGroups; ++i) to[i] += from[i];
}

std::string MeanCores(const std::string& a, double a_span, const std::string& b, double b_span) {
  if (a.size() != b.size()) return b;
  std::string mean(b.size(), '\0');
  for (size_t i = 0; i < mean.size(); ++i) {
    const double busy =
        Mean(static_cast<uint8_t>(a[i]), a_span, static_cast<uint8_t>(b[i]), b_span);
    mean[i] = static_cast<char>(static_cast<uint8_t>(std::clamp(busy + 0.5, 0.0, 255.0)));
  }
  return mean;
}

std::vector<GpuPoint> MeanGpus(const std::vector<GpuPoint>& a, double a_span,
                               std::vector<GpuPoint> b, double b_span) {
  if (b.empty()) return a;
  for (GpuPoint& gpu : b) {
    const auto before = std::find_if(a.begin(), a.end(),
                                     [&](const GpuPoint& one) { return one.index == gpu.index; });
    if (before == a.end()) continue;
    gpu.utilization = Mean(before->utilization, a_span, gpu.utilization, b_span);
    gpu.power_watts = Mean(before->power_watts, a_span, gpu.power_watts, b_span);
    gpu.memory_used_bytes = std::max(before->memory_used_bytes, gpu.memory_used_bytes);
  }
  return b;
}

}  // namespace

const char* NameOf(ThreadGroup group) {
  switch (group) {
    case ThreadGroup::kPipeline:
      return "pipeline";
    case ThreadGroup::kFeed:
      return "feed";
    case ThreadGroup::kTrain:
      return "train";
    case ThreadGroup::kPython:
      return "python";
    case ThreadGroup::kStorage:
      return "storage";
    case ThreadGroup::kGrpc:
      return "grpc";
    case ThreadGroup::kOther:
      return "other";
  }
  std::abort();
}

ThreadGroup ThreadGroupNamed(std::string_view name) {
  for (size_t i = 0; i < kThreadGroups; ++i) {
    const auto group = static_cast<ThreadGroup>(i);
    if (name == NameOf(group)) return group;
  }
  return ThreadGroup::kOther;
}

double Sum(const SecondsByGroup& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

std::optional<double> UsePoint::gpu_utilization() const {
  if (gpus.empty()) return std::nullopt;
  double sum = 0;
  for (const GpuPoint& gpu : gpus) sum += gpu.utilization;
  return sum / static_cast<double>(gpus.size());
}

void Join(const UsePoint& next, UsePoint& to) {
  const auto mean = [&](const auto& a, const auto& b) { return Mean(a, to.span, b, next.span); };
  to.seconds = next.seconds;
  to.unix_ns = next.unix_ns;
  for (size_t i = 0; i < kThreadGroups; ++i)
    to.threads[i] = std::max(to.threads[i], next.threads[i]);
  Add(next.cpu_seconds, to.cpu_seconds);
  Add(next.busiest_thread_seconds, to.busiest_thread_seconds);
  to.run_queue_seconds += next.run_queue_seconds;
  if (next.throttled_seconds) {
    to.throttled_seconds = to.throttled_seconds.value_or(0) + *next.throttled_seconds;
  }
  to.rss_bytes = std::max(to.rss_bytes, next.rss_bytes);
  to.major_faults += next.major_faults;
  to.disk_read_bytes += next.disk_read_bytes;
  to.disk_written_bytes += next.disk_written_bytes;
  to.received_bytes += next.received_bytes;
  to.sent_bytes += next.sent_bytes;
  to.cpu_pressure = mean(to.cpu_pressure, next.cpu_pressure);
  to.io_pressure = mean(to.io_pressure, next.io_pressure);
  to.memory_pressure = mean(to.memory_pressure, next.memory_pressure);
  to.machine_busy_cores = mean(to.machine_busy_cores, next.machine_busy_cores);
  to.core_busy = MeanCores(to.core_busy, to.span, next.core_busy, next.span);
  to.gpus = MeanGpus(to.gpus, to.span, next.gpus, next.span);
  to.cores = next.cores;
  to.memory_limit_bytes = next.memory_limit_bytes;
  to.span += next.span;
}

void UseSeries::Add(const UsePoint& point) {
  if (!points_.empty() && points_.back().span < least_span_) {
    Join(point, points_.back());
  } else {
    points_.push_back(point);
  }
  if (points_.size() < most_) return;
  std::vector<UsePoint> halved;
  halved.reserve(most_);
  double covered = 0;
  for (size_t i = 0; i < points_.size(); ++i) {
    covered += points_[i].span;
    if (i % 2 == 0) {
      halved.push_back(std::move(points_[i]));
    } else {
      Join(points_[i], halved.back());
    }
  }
  points_ = std::move(halved);
  least_span_ = covered / static_cast<double>(points_.size()) * kWholeShare;
}

}  // namespace hetero::insight
