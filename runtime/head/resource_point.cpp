#include "runtime/head/resource_point.h"

#include <algorithm>

#include "runtime/head/member_totals.h"

namespace hetero::head {
namespace {

constexpr double kLongest = 4e8;  // seconds: a dozen years
constexpr double kMostProcessors = 1 << 16;
constexpr int kMostGroupsTold = 64;
constexpr int32_t kMostThreads = 1 << 20;

bool InRange(double value, double most) { return value >= 0 && value <= most; }  // NaN is not
bool InRange(int64_t count) { return count >= 0 && count <= kMostCounted; }

bool PossibleGroups(const v1::ResourcePoint& told) {
  const double most = told.seconds() * kMostProcessors;
  return told.groups_size() <= kMostGroupsTold &&
         std::all_of(told.groups().begin(), told.groups().end(), [most](const auto& group) {
           return InRange(group.cpu_seconds(), most) &&
                  InRange(group.busiest_thread_seconds(), most) && group.threads() >= 0 &&
                  group.threads() <= kMostThreads;
         });
}

bool PossibleGpus(const v1::ResourcePoint& told) {
  return told.gpus_size() <= kMostGpus &&
         std::all_of(told.gpus().begin(), told.gpus().end(), [](const v1::GpuUse& gpu) {
           return gpu.index() >= 0 && InRange(gpu.utilization(), 1) &&
                  InRange(gpu.memory_used_bytes()) && InRange(gpu.memory_total_bytes()) &&
                  InRange(gpu.power_watts(), 1e6);
         });
}

bool PossiblePoint(const v1::ResourcePoint& told) {
  const double most = told.seconds() * kMostProcessors;
  return told.unix_ns() > 0 && told.seconds() > 0 && told.seconds() <= kLongest &&
         PossibleGroups(told) && PossibleGpus(told) && InRange(told.run_queue_seconds(), most) &&
         InRange(told.throttled_seconds(), most) && InRange(told.rss_bytes()) &&
         InRange(told.major_faults()) && InRange(told.disk_read_bytes()) &&
         InRange(told.disk_written_bytes()) && InRange(told.received_bytes()) &&
         InRange(told.sent_bytes()) && InRange(told.cpu_pressure(), 1) &&
         InRange(told.io_pressure(), 1) && InRange(told.memory_pressure(), 1) &&
         InRange(told.cores(), kMostProcessors) &&
         InRange(told.machine_busy_cores(), kMostProcessors) &&
         told.core_busy().size() <= kMostCores && InRange(told.memory_limit_bytes());
}

}  // namespace

std::optional<insight::UsePoint> ReadPoint(const v1::ResourcePoint& told) {
  if (!PossiblePoint(told)) return std::nullopt;
  insight::UsePoint point;
  point.unix_ns = told.unix_ns();
  point.span = told.seconds();
  for (const v1::ThreadGroupUse& group : told.groups()) {
    const auto i = static_cast<size_t>(insight::ThreadGroupNamed(group.group()));
    point.cpu_seconds[i] += group.cpu_seconds();
    point.busiest_thread_seconds[i] =
        std::max(point.busiest_thread_seconds[i], group.busiest_thread_seconds());
    point.threads[i] += group.threads();
  }
  point.run_queue_seconds = told.run_queue_seconds();
  if (told.has_throttled_seconds()) point.throttled_seconds = told.throttled_seconds();
  point.rss_bytes = told.rss_bytes();
  point.major_faults = told.major_faults();
  point.disk_read_bytes = told.disk_read_bytes();
  point.disk_written_bytes = told.disk_written_bytes();
  point.received_bytes = told.received_bytes();
  point.sent_bytes = told.sent_bytes();
  if (told.has_cpu_pressure()) point.cpu_pressure = told.cpu_pressure();
  if (told.has_io_pressure()) point.io_pressure = told.io_pressure();
  if (told.has_memory_pressure()) point.memory_pressure = told.memory_pressure();
  point.cores = told.cores();
  point.machine_busy_cores = told.machine_busy_cores();
  point.core_busy = told.core_busy();
  point.memory_limit_bytes = told.memory_limit_bytes();
  for (const v1::GpuUse& gpu : told.gpus()) {
    point.gpus.push_back({.index = gpu.index(),
                          .utilization = gpu.utilization(),
                          .memory_used_bytes = gpu.memory_used_bytes(),
                          .memory_total_bytes = gpu.memory_total_bytes(),
                          .power_watts = gpu.power_watts()});
  }
  return point;
}

void WritePoint(const insight::UsePoint& point, v1::ResourcePoint* out) {
  out->set_unix_ns(point.unix_ns);
  out->set_seconds(point.span);
  for (size_t i = 0; i < insight::kThreadGroups; ++i) {
    if (point.cpu_seconds[i] == 0 && point.threads[i] == 0) continue;
    v1::ThreadGroupUse* group = out->add_groups();
    group->set_group(insight::NameOf(static_cast<insight::ThreadGroup>(i)));
    group->set_cpu_seconds(point.cpu_seconds[i]);
    group->set_busiest_thread_seconds(point.busiest_thread_seconds[i]);
    group->set_threads(point.threads[i]);
  }
  out->set_run_queue_seconds(point.run_queue_seconds);
  if (point.throttled_seconds) out->set_throttled_seconds(*point.throttled_seconds);
  out->set_rss_bytes(point.rss_bytes);
  out->set_major_faults(point.major_faults);
  out->set_disk_read_bytes(point.disk_read_bytes);
  out->set_disk_written_bytes(point.disk_written_bytes);
  out->set_received_bytes(point.received_bytes);
  out->set_sent_bytes(point.sent_bytes);
  if (point.cpu_pressure) out->set_cpu_pressure(*point.cpu_pressure);
  if (point.io_pressure) out->set_io_pressure(*point.io_pressure);
  if (point.memory_pressure) out->set_memory_pressure(*point.memory_pressure);
  out->set_cores(point.cores);
  out->set_machine_busy_cores(point.machine_busy_cores);
  out->set_core_busy(point.core_busy);
  out->set_memory_limit_bytes(point.memory_limit_bytes);
  for (const insight::GpuPoint& gpu : point.gpus) {
    v1::GpuUse* use = out->add_gpus();
    use->set_index(gpu.index);
    use->set_utilization(gpu.utilization);
    use->set_memory_used_bytes(gpu.memory_used_bytes);
    use->set_memory_total_bytes(gpu.memory_total_bytes);
    use->set_power_watts(gpu.power_watts);
  }
}

}  // namespace hetero::head
