#include "runtime/head/evidence_builder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/operators.h"
#include "runtime/head/member_totals.h"
#include "runtime/head/verdict.h"

namespace hetero::head {
namespace {

using insight::MemberKind;

constexpr size_t kMostStepSeconds = 400;  // of one rank
// Orders tell requests of one sample, which may be less than one.
constexpr double kOrderSamples = 1e6;
// How far a heartbeat's way may put a clock out.
constexpr double kClockErrorSeconds = 0.05;

MemberKind KindOf(api::RoleType type) {
  switch (type) {
    case api::RoleType::kHead:
      return MemberKind::kHead;
    case api::RoleType::kCpuWorker:
      return MemberKind::kCpuWorker;
    case api::RoleType::kGpuWorker:
      break;
  }
  return MemberKind::kTrainer;
}

// A total's growth. One that is smaller than before was begun anew.
template <typename T>
T Since(T before, T now) {
  return now >= before ? now - before : now;
}

insight::PhaseSeconds Since(const insight::PhaseSeconds& before, const insight::PhaseSeconds& now) {
  return {.wait = Since(before.wait, now.wait),
          .host_to_device = Since(before.host_to_device, now.host_to_device),
          .forward = Since(before.forward, now.forward),
          .backward = Since(before.backward, now.backward),
          .all_reduce = Since(before.all_reduce, now.all_reduce),
          .optimizer = Since(before.optimizer, now.optimizer),
          .checkpoint = Since(before.checkpoint, now.checkpoint),
          .evaluation = Since(before.evaluation, now.evaluation),
          .other = Since(before.other, now.other)};
}

insight::WaitSeconds Since(const insight::WaitSeconds& before, const insight::WaitSeconds& now) {
  return {.no_worker = Since(before.no_worker, now.no_worker),
          .workers = Since(before.workers, now.workers),
          .transfer = Since(before.transfer, now.transfer),
          .handover = Since(before.handover, now.handover)};
}

MemberTally TallyOf(const MemberRecord& member) {
  MemberTally tally{.counters = member.counters, .operator_costs = member.operator_costs};
  AddCounters(member.earlier, tally.counters);
  AddCosts(member.earlier_operator_costs, tally.operator_costs);
  if (member.trainer()) tally.rank = WholeTotals(member);
  return tally;
}

// What of a series of points ends after `begin`, in seconds since the job was created.
template <typename Points>
std::vector<const insight::UsePoint*> PointsAfter(double begin, const Points& points) {
  std::vector<const insight::UsePoint*> after;
  for (const insight::UsePoint& point : points) {
    if (point.seconds > begin) after.push_back(&point);
  }
  return after;
}

insight::Moment MomentOf(const insight::UsePoint& point, double begin) {
  insight::Moment moment{.at_seconds = point.seconds - begin,
                         .seconds = point.span,
                         .cpu_share = point.cores > 0 ? point.busy_cores() / point.cores : 0,
                         .io_pressure = point.io_pressure,
                         .rss_bytes = point.rss_bytes};
  for (const insight::GpuPoint& gpu : point.gpus) {
    moment.gpus.push_back({.index = gpu.index,
                           .utilization = gpu.utilization,
                           .memory_used_bytes = gpu.memory_used_bytes,
                           .memory_total_bytes = gpu.memory_total_bytes});
  }
  return moment;
}

void AddGroups(const std::vector<const insight::UsePoint*>& points,
               insight::MemberEvidence& evidence) {
  for (size_t i = 0; i < insight::kThreadGroups; ++i) {
    insight::ThreadGroupEvidence group{.name =
                                           insight::NameOf(static_cast<insight::ThreadGroup>(i))};
    for (const insight::UsePoint* point : points) {
      group.cpu_seconds += point->cpu_seconds[i];
      group.busiest_thread_seconds += point->busiest_thread_seconds[i];
      // The script's have ended before its member's last point.
      group.threads = std::max(group.threads, point->threads[i]);
    }
    if (group.threads > 0 || group.cpu_seconds > 0) evidence.groups.push_back(std::move(group));
  }
}

void AddResources(const std::vector<const insight::UsePoint*>& points, double begin,
                  insight::MemberEvidence& evidence) {
  double cores = 0, busy = 0;
  for (const insight::UsePoint* point : points) {
    evidence.seconds += point->span;
    evidence.run_queue_seconds += point->run_queue_seconds;
    if (point->throttled_seconds) {
      evidence.throttled_seconds =
          evidence.throttled_seconds.value_or(0) + *point->throttled_seconds;
    }
    evidence.disk_read_bytes += point->disk_read_bytes;
    evidence.disk_written_bytes += point->disk_written_bytes;
    evidence.received_bytes += point->received_bytes;
    evidence.sent_bytes += point->sent_bytes;
    cores += point->cores * point->span;
    busy += point->machine_busy_cores * point->span;
    evidence.machine_cores = static_cast<double>(point->core_busy.size());
    evidence.memory_limit_bytes = point->memory_limit_bytes;
    evidence.moments.push_back(MomentOf(*point, begin));
  }
  if (evidence.seconds > 0) {
    evidence.cores = cores / evidence.seconds;
    evidence.machine_busy_cores = busy / evidence.seconds;
  }
  AddGroups(points, evidence);
}

void AddCounts(const MemberTally& before, const MemberTally& now,
               insight::MemberEvidence& evidence) {
  const v1::Counters& from = before.counters;
  const v1::Counters& to = now.counters;
  evidence.batches = Since(from.batches(), to.batches());
  evidence.samples = Since(from.samples(), to.samples());
  evidence.bytes = Since(from.bytes(), to.bytes());
  evidence.busy_seconds = Since(from.busy_seconds(), to.busy_seconds());
  evidence.work_seconds = Since(from.produce_seconds(), to.produce_seconds());
  evidence.read_seconds = Since(from.read_seconds(), to.read_seconds());
  evidence.storage = {.requests = Since(from.storage_requests(), to.storage_requests()),
                      .retries = Since(from.storage_retries(), to.storage_retries()),
                      .throttled = Since(from.storage_throttled(), to.storage_throttled()),
                      .bytes = Since(from.storage_bytes(), to.storage_bytes()),
                      .seconds = Since(from.storage_seconds(), to.storage_seconds())};
  for (size_t i = 0; i < now.operator_costs.size(); ++i) {
    const v1::OperatorCost none;
    const v1::OperatorCost& cost = now.operator_costs[i];
    const v1::OperatorCost& past =
        i < before.operator_costs.size() ? before.operator_costs[i] : none;
    evidence.operators.push_back(
        {.samples = Since(past.samples(), cost.samples()),
         .cpu_seconds = Since(past.cpu_seconds(), cost.cpu_seconds()),
         .python_seconds = Since(past.python_seconds(), cost.python_seconds())});
  }
}

const api::Role* RoleNamed(const api::Spec& spec, const std::string& name) {
  const auto found = std::find_if(spec.roles.begin(), spec.roles.end(),
                                  [&](const api::Role& role) { return role.name == name; });
  return found == spec.roles.end() ? nullptr : &*found;
}

// Of rank 0 the curve has the seconds of steps; of others there are those of followed batches.
std::vector<double> StepSeconds(const JobRecord& record, const MemberRecord& member,
                                int64_t after_step) {
  std::vector<double> seconds;
  if (member.rank == 0) {
    for (const v1::LossPoint& point : record.loss_curve.points()) {
      if (point.step() > after_step && point.seconds_per_step() > 0) {
        seconds.push_back(point.seconds_per_step());
      }
    }
  } else {
    for (const v1::BatchLife& life : member.use.lives()) {
      if (life.step() > after_step && life.step_seconds() > 0) {
        seconds.push_back(life.step_seconds());
      }
    }
  }
  if (seconds.size() <= kMostStepSeconds) return seconds;
  std::vector<double> some;
  for (size_t i = 0; i < kMostStepSeconds; ++i) {
    some.push_back(seconds[i * seconds.size() / kMostStepSeconds]);
  }
  return some;
}

insight::RankEvidence RankEvidenceOf(const JobRecord& record, const MemberRecord& member,
                                     const MemberTally& before, const MemberTally& now,
                                     int64_t after_step) {
  insight::RankEvidence rank{.rank = member.rank,
                             .member = member.name,
                             .steps = Since(before.rank.steps, now.rank.steps),
                             .phases = Since(before.rank.phases, now.rank.phases),
                             .waits = Since(before.rank.waits, now.rank.waits),
                             .step_seconds = StepSeconds(record, member, after_step)};
  for (const v1::BatchLife& life : member.use.lives()) {
    if (life.step() <= after_step) continue;
    rank.lives.push_back({.worker = life.worker(),
                          .queued_seconds = life.queued_seconds(),
                          .work_seconds = life.work_seconds(),
                          .transfer_seconds = life.transfer_seconds(),
                          .window_seconds = life.window_seconds(),
                          .handover_seconds = life.handover_seconds(),
                          .step_seconds = life.step_seconds(),
                          .read_seconds = life.read_seconds(),
                          .cpu_seconds = life.cpu_seconds(),
                          .samples = life.samples(),
                          .bytes = life.bytes()});
  }
  return rank;
}

void AddPipeline(const JobRecord& record, insight::JobEvidence& job) {
  const std::vector<api::OperatorSpec>& pipeline = record.job.spec.pipeline;
  for (size_t i = 0; i < pipeline.size(); ++i) {
    insight::PipelineEntry entry{.op = api::OperatorName(pipeline[i].op), .function = {}};
    if (pipeline[i].op == api::OperatorKind::kPython) {
      entry.function = absl::StrCat(pipeline[i].module, ".", pipeline[i].function);
    }
    if (i < record.placement.size()) entry.on_trainer = record.placement[i].on_trainer();
    job.pipeline.push_back(std::move(entry));
  }
}

void AddOrders(const JobRecord& record, insight::JobEvidence& job) {
  if (!record.order_costs.empty()) job.shuffle = record.order_costs.front().shuffle();
  for (const v1::OrderCost& cost : record.order_costs) {
    job.orders.push_back({.shuffle = cost.shuffle(),
                          .requests = static_cast<int64_t>(
                              std::min(kOrderSamples * cost.requests_per_sample(), 1e18)),
                          .bytes = {},
                          .dollars = {}});
  }
}

std::optional<double> AsDouble(const std::optional<int64_t>& value) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

// There may be more CPU workers than the manifest says that the attempt began with.
int32_t ReplicasOf(const JobRecord& record, const api::Role& role) {
  if (role.type != api::RoleType::kCpuWorker) return role.replicas;
  const auto there = std::count_if(
      record.members.begin(), record.members.end(),
      [&role](const auto& m) { return m.first.role == role.name && m.second.registered(); });
  return std::max(role.replicas, static_cast<int32_t>(there));
}

insight::JobEvidence JobEvidenceOf(const JobRecord& record, base::Instant now) {
  const api::Spec& spec = record.job.spec;
  const api::Training& training = spec.training;
  insight::JobEvidence job;
  for (const api::Role& role : spec.roles) {
    job.roles.push_back({.name = role.name,
                         .kind = KindOf(role.type),
                         .replicas = ReplicasOf(record, role),
                         .min_replicas = role.min_replicas.value_or(role.replicas),
                         .scaled_by_job = role.type == api::RoleType::kCpuWorker &&
                                          spec.autoscaling == api::Switch::kEnabled,
                         .price_per_hour = PricePerHour(role),
                         .gpus_per_replica = role.type == api::RoleType::kGpuWorker
                                                 ? role.gpus_per_replica.value_or(1)
                                                 : 0});
  }
  AddPipeline(record, job);
  AddOrders(record, job);
  job.script = record.runs_scripts();
  job.batch_size = training.batch_size_per_worker;
  job.partitions = training.parallelism.partitions;
  for (const auto& [key, member] : record.members) {
    if (member.ready) job.dataset_samples = std::max(job.dataset_samples, member.ready->samples());
  }
  job.storage_uri = spec.dataset.uri;
  if (training.checkpoint) {
    job.checkpoint_every_steps = training.checkpoint->every_steps;
    job.checkpoint_every_seconds = AsDouble(training.checkpoint->every_seconds);
  }
  if (training.evaluation) {
    job.evaluation_every_steps = training.evaluation->every_steps;
    job.evaluation_every_epochs = training.evaluation->every_epochs;
  }
  if (!job.script) job.learning_rate = training.optimizer.learning_rate;
  job.startup_seconds = record.startup_seconds.value_or(AgeAt(record, now));
  const MemberRecord* first = FindRank(record, 0);
  if (first != nullptr) {
    const RankTotals totals = WholeTotals(*first);
    job.train_seconds = totals.train_seconds;
    job.checkpoint_seconds = totals.phases.checkpoint;
    job.evaluation_seconds = totals.phases.evaluation;
  }
  const v1::Progress progress = JobProgress(record);
  job.checkpoints = record.checkpoints;
  job.evaluations = static_cast<int64_t>(record.evaluations.size());
  job.first_step = progress.first_step();
  job.steps = progress.step();
  job.total_steps = progress.total_steps();
  for (const v1::LossPoint& point : WholeLossCurve(record)) {
    job.losses.push_back({.step = point.step(), .loss = point.loss()});
  }
  job.skipped_steps = progress.skipped_steps();
  return job;
}

// `whole`: of all that members have told, not only of the last minutes.
insight::Evidence EvidenceBetween(const JobTally& begin, const JobRecord& record, base::Instant now,
                                  bool whole) {
  insight::Evidence evidence{.window_seconds = AgeAt(record, now) - begin.job_seconds,
                             .complete = whole,
                             .job = JobEvidenceOf(record, now),
                             .members = {},
                             .ranks = {}};
  for (const auto& [key, member] : record.members) {
    const api::Role* role = RoleNamed(record.job.spec, key.role);
    if (role == nullptr) continue;
    const auto known = begin.members.find(key);
    const MemberTally before = known == begin.members.end() ? MemberTally{} : known->second;
    const MemberTally tally = TallyOf(member);
    insight::MemberEvidence& entry = evidence.members.emplace_back();
    entry.name = member.name;
    entry.role = key.role;
    entry.kind = KindOf(role->type);
    entry.node = member.hello.node();
    AddResources(whole ? PointsAfter(begin.job_seconds, member.use.whole().points())
                       : PointsAfter(begin.job_seconds, member.use.recent()),
                 begin.job_seconds, entry);
    entry.clock_offset_seconds = member.use.clock_offset_seconds();
    entry.clock_error_seconds = kClockErrorSeconds;
    AddCounts(before, tally, entry);
    if (member.trainer()) {
      evidence.ranks.push_back(RankEvidenceOf(record, member, before, tally, begin.step));
    }
  }
  std::sort(evidence.ranks.begin(), evidence.ranks.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return evidence;
}

}  // namespace

JobTally TallyOf(const JobRecord& record, base::Instant now) {
  JobTally tally{
      .job_seconds = AgeAt(record, now), .step = JobProgress(record).step(), .members = {}};
  for (const auto& [key, member] : record.members) tally.members[key] = TallyOf(member);
  return tally;
}

insight::Evidence EvidenceSince(const JobTally& begin, const JobRecord& record, base::Instant now) {
  return EvidenceBetween(begin, record, now, /*whole=*/false);
}

insight::Evidence EvidenceOfTraining(const JobRecord& record, base::Instant now) {
  return EvidenceBetween(
      {.job_seconds = record.startup_seconds.value_or(0), .step = 0, .members = {}}, record, now,
      /*whole=*/true);
}

}  // namespace hetero::head
