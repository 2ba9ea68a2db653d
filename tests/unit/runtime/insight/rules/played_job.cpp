#include "tests/unit/runtime/insight/rules/played_job.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/unit/runtime/insight/rules/played_counters.h"

namespace hetero::insight {
namespace {

constexpr int32_t kTicketsPerWorker = 2;  // of each rank
constexpr double kHandover = 0.0002;

struct PlayedBatch {
  double asked = 0, begun = 0, made = 0, arrived = 0;
};

struct LiveWorker {
  const PlayedWorker* spec = nullptr;
  std::string name;
  size_t process = 0;
  double free_at = 0;
  std::vector<double> ends;  // of its tickets
  std::vector<PlayedTotals> history{PlayedTotals{}};
};

struct LiveRank {
  const PlayedRank* spec = nullptr;
  std::string name;
  size_t process = 0;
  double now = 0, wire_free_at = 0;
  std::vector<PlayedBatch> tickets;
  std::vector<std::pair<double, double>> step_seconds;  // when it ended, how long
  std::vector<PlayedTotals> history{PlayedTotals{}};
};

class Playing {
 public:
  Playing(const PlayedJob& job, uint64_t seed) : job_(job), random_(seed) {
    for (size_t i = 0; i < job.ranks.size(); ++i) {
      ranks_.push_back({.spec = &job.ranks[i], .name = absl::StrCat("gpu-", i), .process = i});
      processes_.emplace_back();
    }
    for (const PlayedWorker& spec : job.workers) {
      LiveWorker worker{.spec = &spec, .name = absl::StrCat("cpu-", workers_.size())};
      if (spec.of_rank) {
        worker.name = ranks_[*spec.of_rank].name;
        worker.process = static_cast<size_t>(*spec.of_rank);
      } else {
        worker.process = processes_.size();
        processes_.emplace_back();
      }
      worker.history[0].operators.resize(job.pipeline.size());
      workers_.push_back(std::move(worker));
    }
  }

  Evidence Run(double begin, double end) {
    for (LiveRank& rank : ranks_) {
      const size_t tickets = kTicketsPerWorker * workers_.size();
      for (size_t i = 0; i < tickets; ++i) Ask(rank);
    }
    for (int64_t step = 1; ranks_[0].now < end; ++step) Step(step);
    return Collect(begin, end);
  }

 private:
  double Normal(double deviation) {
    return std::normal_distribution<double>(0, deviation)(random_);
  }
  double LogNormal(double deviation) { return std::exp(Normal(deviation)); }
  bool Chance(double share) { return std::bernoulli_distribution(share)(random_); }

  // Threads that want to run on each core of a machine, at least 1: what everything takes longer.
  double Crowding(const std::string& machine) const {
    const PlayedMachine& here = job_.machines.at(machine);
    double threads = here.other_threads;
    for (const PlayedWorker& worker : job_.workers) {
      if (worker.machine == machine) threads += worker.threads;
    }
    for (const PlayedRank& rank : job_.ranks) {
      if (rank.machine == machine) threads += rank.threads;
    }
    return std::max(1.0, threads / here.cores);
  }

  LiveWorker& LeastAsked(const LiveRank& rank) {
    LiveWorker* best = nullptr;
    int64_t fewest = std::numeric_limits<int64_t>::max();
    for (LiveWorker& worker : workers_) {
      if (worker.spec->of_rank && *worker.spec->of_rank != &rank - ranks_.data()) continue;
      const auto open = std::count_if(worker.ends.begin(), worker.ends.end(),
                                      [&](double end) { return end > rank.now; });
      if (open < fewest) {
        best = &worker;
        fewest = open;
      }
    }
    return *best;
  }

  double ReadSeconds(PlayedTotals& totals) {
    double seconds = 0;
    for (int32_t i = 0; i < job_.batch; ++i) {
      double one = job_.store.seconds_per_sample * LogNormal(0.3);
      totals.storage.requests += 1;
      while (job_.store.throttled > 0 && Chance(job_.store.throttled)) {
        one += job_.store.backoff_seconds * LogNormal(0.3);
        totals.storage.requests += 1;
        totals.storage.retries += 1;
        totals.storage.throttled += 1;
      }
      seconds += one;
    }
    totals.storage.seconds += seconds;
    totals.storage.bytes += static_cast<int64_t>(job_.batch * job_.store.bytes_per_sample);
    if (job_.store.disk) totals.storage = {};
    return seconds;
  }

  void Ask(LiveRank& rank) {
    LiveWorker& worker = LeastAsked(rank);
    const PlayedWorker& spec = *worker.spec;
    PlayedTotals totals = worker.history.back();
    const double crowding = Crowding(spec.machine);
    double cpu = 0;
    for (size_t i = 0; i < job_.pipeline.size(); ++i) {
      const PlayedOperator& op = job_.pipeline[i];
      if (op.on_trainer) continue;
      const double here = op.cpu_seconds * job_.batch * spec.slowness * LogNormal(0.05);
      cpu += here;
      totals.operators[i].samples += job_.batch / 8;
      totals.operators[i].cpu_seconds += here / 8;
      if (op.python) totals.operators[i].python_seconds += 0.9 * here / 8;
    }
    const double read = ReadSeconds(totals);
    PlayedBatch batch{.asked = rank.now, .begun = std::max(rank.now, worker.free_at)};
    const double wall = (cpu * crowding + read) / spec.threads;
    batch.made = batch.begun + wall;
    PlayedProcess& process = processes_[worker.process];
    process.Compute(kPipeline, batch.begun, batch.made, cpu, spec.threads, crowding);
    if (job_.store.disk) {
      process.Add(batch.begun, batch.made, std::min(wall, read / spec.threads * 1.2),
                  [](PlayedTick& tick) -> double& { return tick.disk_wait; });
    }
    const double bytes = job_.batch * job_.wire_bytes_per_sample;
    Transfer(worker, rank, bytes, batch);
    totals.busy += batch.made - std::max(batch.asked, worker.free_at);
    worker.free_at = batch.made;
    std::erase_if(worker.ends, [&](double end) { return end <= rank.now; });
    worker.ends.push_back(batch.made);
    totals.at = batch.made;
    totals.batches += 1;
    totals.samples += job_.batch;
    totals.bytes += static_cast<int64_t>(bytes);
    totals.work += wall;
    totals.read += read / spec.threads;
    worker.history.push_back(std::move(totals));
    rank.tickets.push_back(batch);
  }

  void Transfer(LiveWorker& worker, LiveRank& rank, double bytes, PlayedBatch& batch) {
    if (worker.spec->of_rank) {
      batch.arrived = batch.made;
      return;
    }
    const double start = std::max(batch.made, rank.wire_free_at);
    batch.arrived = start + bytes / job_.bandwidth * LogNormal(0.05);
    rank.wire_free_at = batch.arrived;
    processes_[worker.process].Add(start, batch.arrived, bytes,
                                   [](PlayedTick& tick) -> double& { return tick.sent; });
    processes_[rank.process].Add(start, batch.arrived, bytes,
                                 [](PlayedTick& tick) -> double& { return tick.received; });
    processes_[rank.process].Compute(kFeed, start, batch.arrived, bytes / 4e9, 1, 1);
  }

  // Takes the batch that is there first.
  void TakeBatch(LiveRank& rank, PlayedTotals& totals) {
    const auto batch = std::min_element(
        rank.tickets.begin(), rank.tickets.end(),
        [](const PlayedBatch& a, const PlayedBatch& b) { return a.arrived < b.arrived; });
    const double ready = std::max(rank.now, batch->arrived);
    const double wait = ready - rank.now;
    totals.waits.workers += std::clamp(batch->made - rank.now, 0.0, wait);
    totals.waits.transfer += wait - std::clamp(batch->made - rank.now, 0.0, wait);
    totals.waits.handover += kHandover;
    totals.phases.wait += wait + kHandover;
    rank.now = ready + kHandover;
    rank.tickets.erase(batch);
    Ask(rank);
  }

  // A rank's own work of one step; returns when it is done with it.
  double Work(LiveRank& rank, PlayedTotals& totals) {
    const PlayedStep& step = job_.step;
    const PlayedRank& spec = *rank.spec;
    const double crowding = Crowding(spec.machine);
    const double factor = spec.slowness * LogNormal(step.noise) * (job_.gpus ? 1 : crowding);
    PhaseSeconds& p = totals.phases;
    const double forward = step.forward * factor, backward = step.backward * factor;
    const double optimizer = step.optimizer * factor;
    double seconds = step.host_to_device + forward + backward + optimizer;
    p.host_to_device += step.host_to_device;
    p.forward += forward;
    p.backward += backward;
    p.optimizer += optimizer;
    if (Chance(step.outliers)) {
      seconds += step.outlier_seconds;
      p.other += step.outlier_seconds;
    }
    const double begin = rank.now;
    double end = begin + seconds;
    PlayedProcess& process = processes_[rank.process];
    if (job_.script) {
      end += PlayScript(process, *job_.script, begin, end);
      p.other += end - begin - seconds;
    } else if (job_.gpus) {
      process.Compute(kTrain, begin, end, (end - begin) * 0.8, 1, 1);
    } else {
      process.Compute(kTrain, begin, end, (end - begin) / crowding * spec.threads * 0.9,
                      spec.threads, crowding);
    }
    if (job_.gpus) {
      process.Add(begin, begin + seconds, seconds * spec.kernel_share,
                  [](PlayedTick& tick) -> double& { return tick.gpu_busy; });
    }
    return end;
  }

  // Returns what a script does besides its computing.
  double PlayScript(PlayedProcess& process, const PlayedScript& script, double begin, double end) {
    if (script.share_the_lock) {
      // All threads' Python of a step takes turns, and the computing waits for the last of it.
      const double python = 2.5 * (end - begin);
      process.Compute(kPython, begin, end + python, end + python - begin, script.python_threads, 1);
      return python;
    }
    const double cpu =
        job_.gpus ? 0.7 * (end - begin) : 0.85 * (end - begin) * ranks_[0].spec->threads;
    process.Compute(kPython, begin, end, cpu, job_.gpus ? 1 : ranks_[0].spec->threads, 1);
    return script.blocked_seconds;
  }

  void Step(int64_t step) {
    std::vector<double> done;
    std::vector<PlayedTotals> all;
    std::vector<double> begun;
    for (LiveRank& rank : ranks_) {
      PlayedTotals totals = rank.history.back();
      begun.push_back(rank.now);
      TakeBatch(rank, totals);
      done.push_back(Work(rank, totals));
      all.push_back(totals);
    }
    const double last = *std::max_element(done.begin(), done.end());
    const double reduced = last + (ranks_.size() > 1 ? job_.step.all_reduce * LogNormal(0.1) : 0);
    for (size_t i = 0; i < ranks_.size(); ++i) {
      LiveRank& rank = ranks_[i];
      all[i].phases.all_reduce += reduced - done[i];
      // Ranks that wait in a reduction keep their GPU busy.
      if (job_.gpus) {
        processes_[rank.process].Add(done[i], reduced,
                                     (reduced - done[i]) * rank.spec->kernel_share,
                                     [](PlayedTick& tick) -> double& { return tick.gpu_busy; });
      }
      rank.now = reduced;
      rank.step_seconds.emplace_back(reduced, reduced - begun[i]);
      all[i].steps = step;
      if (i == 0 && Chance(job_.skipped)) all[i].skipped += 1;
      if (i == 0) PlayLoss(step);
      Pause(rank, all[i], step, i == 0);
      all[i].at = rank.now;
      rank.history.push_back(all[i]);
    }
  }

  void Pause(LiveRank& rank, PlayedTotals& totals, int64_t step, bool first) {
    if (job_.checkpoint_every > 0 && step % job_.checkpoint_every == 0 && first) {
      const double seconds = job_.checkpoint_seconds * LogNormal(0.1);
      totals.phases.checkpoint += seconds;
      totals.checkpoint_count += 1;
      rank.now += seconds;
    }
    if (job_.evaluation_every > 0 && step % job_.evaluation_every == 0) {
      const double seconds = job_.evaluation_seconds * LogNormal(0.02);
      totals.phases.evaluation += seconds;
      totals.evaluation_count += 1;
      if (job_.gpus) {
        processes_[rank.process].Add(rank.now, rank.now + seconds, seconds * 0.9,
                                     [](PlayedTick& tick) -> double& { return tick.gpu_busy; });
      }
      rank.now += seconds;
    }
  }

  void PlayLoss(int64_t step) {
    const double falls = job_.learns ? 1.6 * (1 - std::exp(-static_cast<double>(step) / 400)) : 0;
    double loss = (2.3 - falls) * LogNormal(0.02);
    if (job_.not_finite_from && step >= *job_.not_finite_from) {
      loss = std::numeric_limits<double>::quiet_NaN();
    }
    losses_.push_back({step, loss});
  }

  Evidence Collect(double begin, double end);
  MemberEvidence CollectMember(const std::string& name, size_t process, const std::string& machine,
                               double cores, double begin, double end);
  void CollectMoments(MemberEvidence& member, size_t process, const PlayedRank* rank, double begin,
                      double end);
  void CollectRank(const LiveRank& rank, double begin, double end, Evidence& evidence);
  void AddWorker(const LiveWorker& worker, double begin, double end, MemberEvidence& member);
  void CollectMachines(Evidence& evidence);
  void CollectJob(double end, JobEvidence& job);

  const PlayedJob& job_;
  std::mt19937_64 random_;
  std::vector<PlayedProcess> processes_;
  std::vector<LiveRank> ranks_;
  std::vector<LiveWorker> workers_;
  std::vector<LossEvidence> losses_;
};

void Playing::CollectMoments(MemberEvidence& member, size_t process, const PlayedRank* rank,
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
    moment.io_pressure = std::max(0.0, played.disk_wait / PlayedProcess::kTick + Normal(0.005));
    const double growth = rank != nullptr ? rank->rss_growth : job_.worker_rss_growth;
    moment.rss_bytes = static_cast<int64_t>(3e9 + growth * at + Normal(2e7));
    if (rank != nullptr && job_.gpus) {
      const double busy = played.gpu_busy / PlayedProcess::kTick + Normal(0.01);
      const double memory = rank->gpu_memory + rank->gpu_memory_growth * at / 60 + Normal(0.002);
      moment.gpus = {
          {.index = 0,
           .utilization = std::clamp(busy, 0.0, 1.0),
           .memory_used_bytes = static_cast<int64_t>(std::clamp(memory, 0.0, 1.0) * 80e9),
           .memory_total_bytes = static_cast<int64_t>(80e9)}};
    }
    member.moments.push_back(moment);
  }
}

MemberEvidence Playing::CollectMember(const std::string& name, size_t process,
                                      const std::string& machine, double cores, double begin,
                                      double end) {
  static constexpr const char* kNames[] = {"pipeline", "feed",    "train",
                                           "python",   "storage", "grpc"};
  MemberEvidence member{.name = name, .node = machine, .seconds = end - begin, .cores = cores};
  member.memory_limit_bytes = static_cast<int64_t>(job_.memory_limit);
  member.clock_offset_seconds = job_.machines.at(machine).clock_offset + Normal(0.002);
  member.clock_error_seconds = 0.001;
  const auto first = static_cast<size_t>(begin / PlayedProcess::kTick);
  const auto last = static_cast<size_t>(end / PlayedProcess::kTick);
  for (size_t tick = first; tick < last; ++tick) {
    PlayedTick& played = processes_[process].At(tick);
    played.cpu[kGrpc] += 0.01 * std::abs(Normal(1));
    played.busiest[kGrpc] = played.cpu[kGrpc];
    played.run_queue += 0.005 * std::abs(Normal(1));
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

void SetThreads(MemberEvidence& member, const std::string& group, int32_t threads) {
  for (ThreadGroupEvidence& evidence : member.groups) {
    if (evidence.name == group) evidence.threads = threads;
  }
}

void Playing::AddWorker(const LiveWorker& worker, double begin, double end,
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

void Playing::CollectRank(const LiveRank& rank, double begin, double end, Evidence& evidence) {
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

void Playing::CollectMachines(Evidence& evidence) {
  for (MemberEvidence& member : evidence.members) {
    const PlayedMachine& machine = job_.machines.at(member.node);
    double busy = machine.other_threads / Crowding(member.node);
    for (const MemberEvidence& other : evidence.members) {
      if (other.node != member.node) continue;
      for (const ThreadGroupEvidence& group : other.groups)
        busy += group.cpu_seconds / other.seconds;
    }
    member.machine_cores = machine.cores;
    member.machine_busy_cores = std::clamp(busy + 0.2 * std::abs(Normal(1)), 0.0, machine.cores);
  }
}

void Playing::CollectJob(double end, JobEvidence& job) {
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
  for (const LossEvidence& loss : losses_) {
    if (loss.step <= now.steps) job.losses.push_back(loss);
  }
}

Evidence Playing::Collect(double begin, double end) {
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

Evidence Play(const PlayedJob& job, uint64_t seed, double begin, double end) {
  return Playing(job, seed).Run(begin, end);
}

}  // namespace hetero::insight
