#include "tests/unit/runtime/insight/rules/played_job.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/unit/runtime/insight/rules/played_state.h"

namespace hetero::insight {
namespace {

constexpr int32_t kTicketsPerWorker = 2;  // of each rank
constexpr double kHandover = 0.0002;

class Playing {
 public:
  Playing(const PlayedJob& job, uint64_t seed)
      : state_{.job = job, .random = std::mt19937_64(seed)} {
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
    return Collect(state_, begin, end);
  }

 private:
  double LogNormal(double deviation) { return std::exp(state_.Normal(deviation)); }
  bool Chance(double share) { return std::bernoulli_distribution(share)(random_); }

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
    double noise = 1;
    for (int32_t i = 0; i < job_.batch; ++i) {
      if (i % 8 == 0) noise = LogNormal(0.3);
      double one = job_.store.seconds_per_sample * noise;
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
    const double crowding = Crowding(job_, spec.machine);
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
    batch.worker = &worker;
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

  void Transfer(LiveRank& rank, PlayedBatch& batch) {
    LiveWorker& worker = *batch.worker;
    const double bytes = job_.batch * job_.wire_bytes_per_sample;
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

  // Sends what is made by now, or else what will be made first, in the order of being made.
  void SendMade(LiveRank& rank) {
    while (true) {
      PlayedBatch* next = nullptr;
      bool some_sent = false;
      for (PlayedBatch& batch : rank.tickets) {
        some_sent = some_sent || batch.arrived > 0;
        if (batch.arrived > 0) continue;
        if (next == nullptr || batch.made < next->made) next = &batch;
      }
      if (next == nullptr || (some_sent && next->made > rank.now)) return;
      Transfer(rank, *next);
    }
  }

  // Takes the batch that is there first.
  void TakeBatch(LiveRank& rank, PlayedTotals& totals) {
    SendMade(rank);
    const auto batch = std::min_element(
        rank.tickets.begin(), rank.tickets.end(), [](const PlayedBatch& a, const PlayedBatch& b) {
          const bool sent = a.arrived > 0;
          return sent == (b.arrived > 0) ? a.arrived < b.arrived : sent;
        });
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
    const double crowding = Crowding(job_, spec.machine);
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
    state_.losses.push_back({step, loss});
  }

  PlayedState state_;
  const PlayedJob& job_ = state_.job;
  std::mt19937_64& random_ = state_.random;
  std::vector<PlayedProcess>& processes_ = state_.processes;
  std::vector<LiveRank>& ranks_ = state_.ranks;
  std::vector<LiveWorker>& workers_ = state_.workers;
};

}  // namespace

double Crowding(const PlayedJob& job, const std::string& machine) {
  const PlayedMachine& here = job.machines.at(machine);
  double threads = here.other_threads;
  for (const PlayedWorker& worker : job.workers) {
    if (worker.machine == machine) threads += worker.threads;
  }
  for (const PlayedRank& rank : job.ranks) {
    if (rank.machine == machine) threads += rank.threads;
  }
  return std::max(1.0, threads / here.cores);
}

Evidence Play(const PlayedJob& job, uint64_t seed, double begin, double end) {
  return Playing(job, seed).Run(begin, end);
}

}  // namespace hetero::insight
