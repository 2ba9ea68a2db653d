#include <algorithm>
#include <cmath>
#include <string>

#include "tests/unit/runtime/insight/rules/played_state.h"

namespace hetero::insight {
namespace {

class Collecting {
 public:
  explicit Collecting(PlayedState& state) : state_(state) {}

  Evidence Everything(double begin, double end);

 private:
  MemberEvidence CollectMember(const std::string& name, size_t process, const std::string& machine,
                               double cores, double begin, double end);
  void CollectMoments(MemberEvidence& member, size_t process, const PlayedRank* rank, double begin,
                      double end);
  void CollectRank(const LiveRank& rank, double begin, double end, Evidence& evidence);
  void AddWorker(const LiveWorker& worker, double begin, double end, MemberEvidence& member);
  void CollectMachines(Evidence& evidence);
  void CollectJob(double end, JobEvidence& job);

  PlayedState& state_;
  const PlayedJob& job_ = state_.job;
  std::vector<PlayedProcess>& processes_ = state_.processes;
  std::vector<LiveRank>& ranks_ = state_.ranks;
  std::vector<LiveWorker>& workers_ = state_.workers;
};

void SetThreads(MemberEvidence& member, const std::string& group, int32_t threads) {
  for (ThreadGroupEvidence& evidence : member.groups) {
    if (evidence.name == group) evidence.threads = threads;
  }
}

void Collecting::CollectMoments(MemberEvidence& member, size_t process, const PlayedRank* rank,
                                double begin, double end) {
  const auto first = static_cast<size_t>(begin / PlayedProcess::kTick);
  const auto last = static_cast<size_t>(end / PlayedProcess::kTick);
  for (size_t tick = first; tick < last; ++tick) {
    const PlayedTick& played = processes_[process].At(tick);
    double cpu = 0;
    for (const double seconds : played.cpu) cpu += seconds;
    const double at = static_cast<double>(tick + 1) * PlayedProcess::kTick;
    Moment moment{.at_seconds = at - begin, .seconds = PlayedProcess::kTick};
    moment.cpu_share = cpu / PlayedProcess::kTick / member.cores;
    moment.io_pressure =
        std::max(0.0, played.disk_wait / PlayedProcess::kTick + state_.Normal(0.005));
    const double growth = rank != nullptr ? rank->rss_growth : job_.worker_rss_growth;
    moment.rss_bytes = static_cast<int64_t>(3e9 + growth * at + state_.Normal(2e7));
    if (rank != nullptr && job_.gpus) {
      const double busy = played.gpu_busy / PlayedProcess::kTick + state_.Normal(0.01);
      const double memory =
          rank->gpu_memory + rank->gpu_memory_growth * at / 60 + state_.Normal(0.002);
      moment.gpus = {
          {.index = 0,
           .utilization = std::clamp(busy, 0.0, 1.0),
           .memory_used_bytes = static_cast<int64_t>(std::clamp(memory, 0.0, 1.0) * 80e9),
           .memory_total_bytes = static_cast<int64_t>(80e9)}};
    }
    member.moments.push_back(moment);
  }
}

MemberEvidence Collecting::CollectMember(const std::string& name, size_t process,
                                         const std::string& machine, double cores, double begin,
                                         double end) {
  static constexpr const char* kNames[] = {"pipeline", "feed",    "train",
                                           "python",   "storage", "grpc"};
  MemberEvidence member{.name = name, .node = machine, .seconds = end - begin, .cores = cores};
  member.memory_limit_bytes = static_cast<int64_t>(job_.memory_limit);
  member.clock_offset_seconds = job_.machines.at(machine).clock_offset + state_.Normal(0.002);
  member.clock_error_seconds = 0.001;
  const auto first = static_cast<size_t>(begin / PlayedProcess::kTick);
  const auto last = static_cast<size_t>(end / PlayedProcess::kTick);
  for (size_t tick = first; tick < last; ++tick) {
    PlayedTick& played = processes_[process].At(tick);
    played.cpu[kGrpc] += 0.01 * std::abs(state_.Normal(1));
    played.busiest[kGrpc] = played.cpu[kGrpc];
    played.run_queue += 0.005 * std::abs(state_.Normal(1));
    member.run_queue_seconds += played.run_queue;
    member.received_bytes += static_cast<int64_t>(played.received);
    member.sent_bytes += static_cast<int64_t>(played.sent);
  }
  for (size_t group = 0; group < kPlayedGroups; ++group) {
    ThreadGroupEvidence evidence{.name = kNames[group]};
    for (size_t tick = first; tick < last; ++tick) {
      evidence.cpu_seconds += processes_[process].At(tick).cpu[group];
      evidence.busiest_thread_seconds += processes_[process].At(tick).busiest[group];
    }
    evidence.threads = 1;
    if (evidence.cpu_seconds > 0) member.groups.push_back(evidence);
  }
  return member;
}

void Collecting::AddWorker(const LiveWorker& worker, double begin, double end,
                           MemberEvidence& member) {
  const PlayedTotals& from = ToldBy(worker.history, begin);
  const PlayedTotals& to = ToldBy(worker.history, end);
  member.batches = to.batches - from.batches;
  member.samples = to.samples - from.samples;
  member.bytes = to.bytes - from.bytes;
  member.busy_seconds = to.busy - from.busy;
  member.work_seconds = to.work - from.work;
  member.read_seconds = to.read - from.read;
  member.storage = {.requests = to.storage.requests - from.storage.requests,
                    .retries = to.storage.retries - from.storage.retries,
                    .throttled = to.storage.throttled - from.storage.throttled,
                    .bytes = to.storage.bytes - from.storage.bytes,
                    .seconds = to.storage.seconds - from.storage.seconds};
  for (size_t i = 0; i < to.operators.size(); ++i) {
    member.operators.push_back(
        {.samples = to.operators[i].samples - from.operators[i].samples,
         .cpu_seconds = to.operators[i].cpu_seconds - from.operators[i].cpu_seconds,
         .python_seconds = to.operators[i].python_seconds - from.operators[i].python_seconds});
  }
  SetThreads(member, "pipeline", worker.spec->threads);
}

void Collecting::CollectRank(const LiveRank& rank, double begin, double end, Evidence& evidence) {
  const PlayedTotals& from = ToldBy(rank.history, begin);
  const PlayedTotals& to = ToldBy(rank.history, end);
  RankEvidence told{.rank = static_cast<int32_t>(evidence.ranks.size()), .member = rank.name};
  told.steps = to.steps - from.steps;
  told.phases = Minus(to.phases, from.phases);
  told.waits = Minus(to.waits, from.waits);
  if (job_.script) {
    const double pauses = told.phases.checkpoint + told.phases.evaluation;
    told.phases = {.wait = told.phases.wait, .other = to.at - from.at - told.phases.wait - pauses};
    told.phases.other += pauses;
  }
  for (const auto& [at, seconds] : rank.step_seconds) {
    if (at > begin && at <= end && told.step_seconds.size() < 600) {
      told.step_seconds.push_back(seconds);
    }
  }
  evidence.ranks.push_back(std::move(told));
}

void Collecting::CollectMachines(Evidence& evidence) {
  for (MemberEvidence& member : evidence.members) {
    const PlayedMachine& machine = job_.machines.at(member.node);
    double busy = machine.other_threads / Crowding(job_, member.node);
    for (const MemberEvidence& other : evidence.members) {
      if (other.node != member.node) continue;
      for (const ThreadGroupEvidence& group : other.groups)
        busy += group.cpu_seconds / other.seconds;
    }
    member.machine_cores = machine.cores;
    member.machine_busy_cores =
        std::clamp(busy + 0.2 * std::abs(state_.Normal(1)), 0.0, machine.cores);
  }
}

void Collecting::CollectJob(double end, JobEvidence& job) {
  int32_t workers = 0;
  for (const PlayedWorker& worker : job_.workers) workers += worker.of_rank ? 0 : 1;
  if (workers > 0) {
    job.roles.push_back({.name = "cpu", .kind = MemberKind::kCpuWorker, .replicas = workers});
    job.roles.back().price_per_hour = job_.cpu_price;
  }
  job.roles.push_back({.name = "gpu",
                       .kind = MemberKind::kTrainer,
                       .replicas = static_cast<int32_t>(job_.ranks.size()),
                       .price_per_hour = job_.gpu_price,
                       .gpus_per_replica = job_.gpus ? 1 : 0});
  for (const PlayedOperator& op : job_.pipeline) {
    job.pipeline.push_back(
        {.op = op.op, .function = op.python ? "mine.mix" : "", .on_trainer = op.on_trainer});
  }
  const PlayedTotals& now = ToldBy(ranks_[0].history, end);
  job.script = job_.script.has_value();
  job.batch_size = job_.batch;
  job.storage_uri = job_.store.disk ? "file:///data/photos" : "s3://photos/train";
  job.learning_rate = 0.1;
  job.startup_seconds = job_.startup_seconds;
  job.train_seconds = now.at;
  job.checkpoint_seconds = now.phases.checkpoint;
  job.evaluation_seconds = now.phases.evaluation;
  job.checkpoints = static_cast<int64_t>(now.checkpoint_count);
  job.evaluations = static_cast<int64_t>(now.evaluation_count);
  if (job_.checkpoint_every > 0) job.checkpoint_every_steps = job_.checkpoint_every;
  if (job_.evaluation_every > 0) job.evaluation_every_steps = job_.evaluation_every;
  job.steps = now.steps;
  job.total_steps = 100000;
  job.skipped_steps = now.skipped;
  for (const LossEvidence& loss : state_.losses) {
    if (loss.step <= now.steps) job.losses.push_back(loss);
  }
}

Evidence Collecting::Everything(double begin, double end) {
  Evidence evidence{.window_seconds = end - begin};
  for (const LiveRank& rank : ranks_) {
    MemberEvidence member =
        CollectMember(rank.name, rank.process, rank.spec->machine, rank.spec->cores, begin, end);
    member.role = "gpu";
    member.kind = MemberKind::kTrainer;
    for (const LiveWorker& worker : workers_) {
      if (worker.process == rank.process) AddWorker(worker, begin, end, member);
    }
    SetThreads(member, "train", rank.spec->threads);
    if (job_.script) SetThreads(member, "python", job_.script->python_threads);
    CollectMoments(member, rank.process, rank.spec, begin, end);
    evidence.members.push_back(std::move(member));
    CollectRank(rank, begin, end, evidence);
  }
  for (const LiveWorker& worker : workers_) {
    if (worker.spec->of_rank) continue;
    MemberEvidence member = CollectMember(worker.name, worker.process, worker.spec->machine,
                                          worker.spec->cores, begin, end);
    member.role = "cpu";
    AddWorker(worker, begin, end, member);
    CollectMoments(member, worker.process, nullptr, begin, end);
    evidence.members.push_back(std::move(member));
  }
  CollectMachines(evidence);
  CollectJob(end, evidence.job);
  return evidence;
}

}  // namespace

Evidence Collect(PlayedState& state, double begin, double end) {
  return Collecting(state).Everything(begin, end);
}

}  // namespace hetero::insight
