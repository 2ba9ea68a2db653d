#include "runtime/insight/rules/clean.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

namespace hetero::insight {
namespace {

constexpr double kLargest = 1e9;  // seconds: thirty years
constexpr int64_t kMostCount = 1000000000000000;
constexpr double kSmallest = 1e-9;       // less is nothing
constexpr int32_t kMostOfOne = 1000000;  // replicas, threads, samples of a batch

bool Possible(double value) { return std::isfinite(value) && value >= 0 && value <= kLargest; }

template <typename... Doubles>
void Fix(double& value, Doubles&... others) {
  if (!Possible(value) || value < kSmallest) value = 0;
  if constexpr (sizeof...(others) > 0) Fix(others...);
}

template <typename... Integers>
void FixCount(int64_t& value, Integers&... others) {
  value = value > kMostCount ? 0 : std::max<int64_t>(value, 0);
  if constexpr (sizeof...(others) > 0) FixCount(others...);
}

void FixCount(int32_t& value) { value = value > kMostOfOne ? 0 : std::max(value, 0); }

void FixCount(std::optional<int64_t>& value) {
  if (value && (*value <= 0 || *value > kMostCount)) value.reset();
}

void FixShare(double& share) {
  Fix(share);
  share = std::min(share, 1.0);
}

void Fix(std::optional<double>& value) {
  if (value && (!Possible(*value) || *value < kSmallest)) value.reset();
}

void Fix(PhaseSeconds& p) {
  Fix(p.wait, p.host_to_device, p.forward, p.backward, p.all_reduce, p.optimizer, p.checkpoint,
      p.evaluation, p.other);
}

void Fix(Moment& moment) {
  Fix(moment.at_seconds, moment.seconds);
  FixShare(moment.cpu_share);
  if (moment.io_pressure && !Possible(*moment.io_pressure)) moment.io_pressure.reset();
  if (moment.io_pressure) FixShare(*moment.io_pressure);
  FixCount(moment.rss_bytes);
  for (GpuMoment& gpu : moment.gpus) {
    FixShare(gpu.utilization);
    FixCount(gpu.memory_used_bytes, gpu.memory_total_bytes);
  }
}

void Fix(MemberEvidence& m) {
  for (ThreadGroupEvidence& group : m.groups) {
    Fix(group.cpu_seconds, group.busiest_thread_seconds);
    FixCount(group.threads);
  }
  Fix(m.seconds, m.run_queue_seconds, m.cores, m.machine_cores, m.machine_busy_cores,
      m.clock_error_seconds, m.busy_seconds, m.work_seconds, m.read_seconds, m.storage.seconds);
  Fix(m.throttled_seconds);
  FixCount(m.disk_read_bytes, m.disk_written_bytes, m.received_bytes, m.sent_bytes,
           m.memory_limit_bytes, m.batches, m.samples, m.bytes);
  FixCount(m.storage.requests, m.storage.retries, m.storage.throttled, m.storage.bytes);
  if (m.clock_offset_seconds && !Possible(std::abs(*m.clock_offset_seconds))) {
    m.clock_offset_seconds.reset();
  }
  for (Moment& moment : m.moments) Fix(moment);
  std::erase_if(m.moments, [](const Moment& moment) { return moment.seconds <= 0; });
  for (OperatorEvidence& op : m.operators) {
    FixCount(op.samples);
    Fix(op.cpu_seconds, op.python_seconds);
  }
}

void Fix(RankEvidence& rank) {
  FixCount(rank.steps);
  Fix(rank.phases);
  Fix(rank.waits.no_worker, rank.waits.workers, rank.waits.transfer, rank.waits.handover);
  std::erase_if(rank.step_seconds,
                [](double seconds) { return !Possible(seconds) || seconds <= 0; });
  for (LifeEvidence& life : rank.lives) {
    Fix(life.queued_seconds, life.work_seconds, life.transfer_seconds, life.window_seconds,
        life.handover_seconds, life.step_seconds, life.read_seconds, life.cpu_seconds);
    FixCount(life.samples);
    FixCount(life.bytes);
  }
}

void Fix(JobEvidence& job) {
  for (RoleEvidence& role : job.roles) {
    FixCount(role.replicas);
    FixCount(role.min_replicas);
    FixCount(role.gpus_per_replica);
    Fix(role.price_per_hour);
  }
  FixCount(job.batch_size);
  job.partitions = std::max(job.partitions, 1);
  FixCount(job.checkpoint_every_steps);
  FixCount(job.evaluation_every_steps);
  FixCount(job.evaluation_every_epochs);
  for (LossEvidence& point : job.losses) FixCount(point.step);
  for (ReportOrder& order : job.orders) FixCount(order.requests);
  Fix(job.checkpoint_every_seconds);
  if (job.learning_rate && !(*job.learning_rate >= 0)) job.learning_rate.reset();
  Fix(job.startup_seconds, job.train_seconds, job.checkpoint_seconds, job.evaluation_seconds);
  FixCount(job.dataset_samples, job.checkpoints, job.evaluations, job.first_step, job.steps,
           job.total_steps, job.skipped_steps);
}

}  // namespace

Evidence Clean(Evidence evidence) {
  Fix(evidence.window_seconds);
  Fix(evidence.job);
  for (MemberEvidence& member : evidence.members) Fix(member);
  for (RankEvidence& rank : evidence.ranks) Fix(rank);
  return evidence;
}

}  // namespace hetero::insight
