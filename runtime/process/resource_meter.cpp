#include "runtime/process/resource_meter.h"

#include <algorithm>
#include <cmath>

#include "runtime/head/resource_point.h"
#include "runtime/process/thread_groups.h"

namespace hetero::process {
namespace {

using insight::ThreadGroup;

// Since it was read before; numbers of threads and processes are given out again.
base::TaskUse Used(const std::map<pid_t, base::TaskUse>& before, base::TaskUse now) {
  const auto known = before.find(now.id);
  if (known == before.end() || known->second.cpu_seconds > now.cpu_seconds ||
      known->second.run_queue_seconds > now.run_queue_seconds) {
    return now;
  }
  now.cpu_seconds -= known->second.cpu_seconds;
  now.run_queue_seconds -= known->second.run_queue_seconds;
  return now;
}

void Remember(const std::vector<base::TaskUse>& tasks, std::map<pid_t, base::TaskUse>& known) {
  known.clear();
  for (const base::TaskUse& task : tasks) known.emplace(task.id, task);
}

int64_t More(int64_t now, int64_t before) { return std::max<int64_t>(now - before, 0); }

std::optional<double> ShareOf(std::optional<double> now, std::optional<double> before,
                              double seconds) {
  if (!now || !before) return std::nullopt;
  return std::clamp((*now - *before) / seconds, 0.0, 1.0);
}

}  // namespace

insight::UsePoint ResourceMeter::Next(const base::ResourceTotals& totals, double seconds) {
  insight::UsePoint point;
  point.span = seconds;
  if (!before_) point.span = std::max(totals.process_seconds, seconds);
  AddThreads(totals, point);
  AddChildren(totals, point);
  point.rss_bytes = totals.rss_bytes;
  point.cores = totals.usable_cores;
  point.memory_limit_bytes = totals.memory_limit_bytes;
  point.major_faults = More(totals.major_faults, before_ ? before_->major_faults : 0);
  point.disk_read_bytes = More(totals.disk.read, before_ ? before_->disk.read : 0);
  point.disk_written_bytes = More(totals.disk.written, before_ ? before_->disk.written : 0);
  if (before_) AddMachine(totals, point);
  before_ = totals;
  return point;
}

void ResourceMeter::AddThreads(const base::ResourceTotals& totals, insight::UsePoint& point) {
  for (const base::TaskUse& thread : totals.threads) {
    const base::TaskUse used = Used(threads_, thread);
    const auto group = static_cast<size_t>(GroupOfThread(thread.name));
    point.cpu_seconds[group] += used.cpu_seconds;
    point.busiest_thread_seconds[group] =
        std::max(point.busiest_thread_seconds[group], used.cpu_seconds);
    point.threads[group] += 1;
    point.run_queue_seconds += used.run_queue_seconds;
  }
  Remember(totals.threads, threads_);
  told_own_ += insight::Sum(point.cpu_seconds);
  const double ended = std::max(totals.process_cpu_seconds - told_own_, 0.0);
  point.cpu_seconds[static_cast<size_t>(ThreadGroup::kOther)] += ended;
  told_own_ += ended;
}

void ResourceMeter::AddChildren(const base::ResourceTotals& totals, insight::UsePoint& point) {
  const auto group = static_cast<size_t>(ThreadGroup::kPython);
  double sum = totals.children_cpu_seconds;
  for (const base::TaskUse& child : totals.children) sum += child.cpu_seconds;
  double busiest = 0, seen = 0;
  for (const base::TaskUse& thread : totals.child_threads) {
    const double used = Used(children_, thread).cpu_seconds;
    busiest = std::max(busiest, used);
    seen += used;
    point.threads[group] += 1;
  }
  Remember(totals.child_threads, children_);
  const double used = std::max(sum - told_children_, 0.0);
  point.cpu_seconds[group] += used;
  // Threads that have ended are not seen, and may have been the busiest.
  point.busiest_thread_seconds[group] = std::max(
      point.busiest_thread_seconds[group], std::min(busiest + std::max(used - seen, 0.0), used));
  told_children_ += used;
}

void ResourceMeter::AddMachine(const base::ResourceTotals& totals, insight::UsePoint& point) const {
  point.received_bytes = More(totals.network.received, before_->network.received);
  point.sent_bytes = More(totals.network.sent, before_->network.sent);
  point.cpu_pressure =
      ShareOf(totals.cpu_pressure_seconds, before_->cpu_pressure_seconds, point.span);
  point.io_pressure = ShareOf(totals.io_pressure_seconds, before_->io_pressure_seconds, point.span);
  point.memory_pressure =
      ShareOf(totals.memory_pressure_seconds, before_->memory_pressure_seconds, point.span);
  if (totals.throttled_seconds && before_->throttled_seconds) {
    point.throttled_seconds =
        std::max(*totals.throttled_seconds - *before_->throttled_seconds, 0.0);
  }
  for (size_t i = 0; i < totals.cores.size() && i < before_->cores.size(); ++i) {
    const double all = totals.cores[i].all_seconds - before_->cores[i].all_seconds;
    const double busy = totals.cores[i].busy_seconds - before_->cores[i].busy_seconds;
    const double share = all > 0 ? std::clamp(busy / all, 0.0, 1.0) : 0;
    point.machine_busy_cores += share;
    if (i < head::kMostCores) {
      point.core_busy.push_back(static_cast<char>(static_cast<uint8_t>(std::lround(share * 255))));
    }
  }
}

}  // namespace hetero::process
