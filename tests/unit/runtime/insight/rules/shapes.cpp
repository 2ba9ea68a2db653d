#include "tests/unit/runtime/insight/rules/shapes.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hetero::insight {
namespace {

double Demand(const PlayedJob& job) {
  return static_cast<double>(job.ranks.size()) * job.batch / StepSeconds(job);
}

void AddRanks(PlayedJob& job, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    const std::string machine = absl::StrCat("g", i);
    job.machines[machine] = {.cores = 16};
    job.ranks.push_back({.machine = machine, .cores = 8});
  }
}

void AddWorkers(PlayedJob& job, int32_t count, int32_t threads) {
  for (int32_t i = 0; i < count; ++i) {
    const std::string machine = absl::StrCat("c", i);
    job.machines[machine] = {.cores = threads + 2.0};
    job.workers.push_back(
        {.machine = machine, .threads = threads, .cores = static_cast<double>(threads)});
  }
}

std::vector<PlayedOperator> Photos() {
  return {{.op = "Decode", .cpu_seconds = 4.5},
          {.op = "RandomResizedCrop", .cpu_seconds = 2.5},
          {.op = "HorizontalFlip", .cpu_seconds = 0.3},
          {.op = "ColorJitter", .cpu_seconds = 2.2},
          {.op = "Normalize", .on_trainer = true}};
}

void Pace(PlayedJob& job, Draw& draw) {
  const double step = job.batch / draw.Between(400, 1200);
  job.step = {.host_to_device = 0.02 * step,
              .forward = 0.28 * step,
              .backward = 0.6 * step,
              .all_reduce = 0.05 * step,
              .optimizer = 0.05 * step};
}

}  // namespace

double StepSeconds(const PlayedJob& job) {
  const PlayedStep& step = job.step;
  return step.host_to_device + step.forward + step.backward + step.optimizer +
         (job.ranks.size() > 1 ? step.all_reduce : 0);
}

double CpuPerSample(const PlayedJob& job) {
  double seconds = 0;
  for (const PlayedOperator& op : job.pipeline) seconds += op.on_trainer ? 0 : op.cpu_seconds;
  return seconds;
}

void Fit(PlayedJob& job, double headroom, double read) {
  constexpr double kMeanOfNoise = 1.046;  // of a read's
  double threads = 0;
  for (const PlayedWorker& worker : job.workers) threads += worker.threads;
  const double cost = threads / (Demand(job) * headroom);
  const double factor = cost * (1 - read) / CpuPerSample(job);
  for (PlayedOperator& op : job.pipeline) op.cpu_seconds *= factor;
  job.store.seconds_per_sample = cost * read / kMeanOfNoise;
}

void TakeSmallerSteps(PlayedJob& job) {
  constexpr int32_t kBatch = 64;
  const double factor = static_cast<double>(kBatch) / job.batch;
  PlayedStep& step = job.step;
  for (double* part :
       {&step.host_to_device, &step.forward, &step.backward, &step.all_reduce, &step.optimizer}) {
    *part *= factor;
  }
  job.checkpoint_every = static_cast<int64_t>(static_cast<double>(job.checkpoint_every) / factor);
  job.evaluation_every = static_cast<int64_t>(static_cast<double>(job.evaluation_every) / factor);
  job.batch = kBatch;
}

void Connect(PlayedJob& job, double room) {
  job.bandwidth =
      room * Demand(job) / static_cast<double>(job.ranks.size()) * job.wire_bytes_per_sample;
}

PlayedJob Photographs(Draw& draw, int32_t ranks, int32_t workers, double headroom) {
  PlayedJob job;
  job.batch = 64 << draw.Whole(0, 2);
  AddRanks(job, ranks);
  AddWorkers(job, workers, draw.Whole(4, 16));
  job.pipeline = Photos();
  Pace(job, draw);
  Fit(job, headroom, draw.Between(0.05, 0.2));
  Connect(job);
  job.checkpoint_every = static_cast<int64_t>(20 / StepSeconds(job));
  job.checkpoint_seconds = draw.Between(0.1, 0.4);
  job.evaluation_every = static_cast<int64_t>(25 / StepSeconds(job));
  job.evaluation_seconds = draw.Between(0.5, 1.5);
  if (draw.Coin()) {
    job.cpu_price = 0.68;
    job.gpu_price = 3.06;
  }
  return job;
}

PlayedJob AnyPhotographs(Draw& draw) {
  const int32_t ranks = draw.Whole(1, 4);
  const int32_t workers = draw.Whole(2, 6);
  return Photographs(draw, ranks, workers, draw.Between(1.3, 1.6));
}

PlayedJob CpuRanks(Draw& draw) {
  PlayedJob job;
  job.gpus = false;
  job.batch = 32 << draw.Whole(0, 2);
  AddRanks(job, draw.Whole(1, 4));
  for (PlayedRank& rank : job.ranks) {
    rank.threads = 8;
    job.machines[rank.machine].cores = 10;
  }
  const int32_t workers = draw.Whole(1, 3);
  AddWorkers(job, workers, draw.Whole(2, 4));
  job.pipeline = Photos();
  const double step = job.batch / draw.Between(40, 200);
  job.step = {.host_to_device = 0.001 * step,
              .forward = 0.3 * step,
              .backward = 0.6 * step,
              .all_reduce = 0.06 * step,
              .optimizer = 0.04 * step};
  const double headroom = draw.Between(1.3, 1.6);
  Fit(job, headroom, draw.Between(0.05, 0.2));
  Connect(job);
  return job;
}

PlayedJob AnyScript(Draw& draw) {
  PlayedJob job = draw.Coin() ? AnyPhotographs(draw) : CpuRanks(draw);
  job.script = PlayedScript{.python_threads = job.gpus ? draw.Whole(1, 4) : 8};
  job.checkpoint_every = 0;
  job.evaluation_every = 0;
  return job;
}

PlayedJob OwnCores(Draw& draw, double headroom, double read) {
  PlayedJob job = Photographs(draw, draw.Whole(1, 2), 1, 1);
  job.workers.clear();
  job.machines.erase("c0");
  for (size_t i = 0; i < job.ranks.size(); ++i) {
    job.ranks[i].cores = 4;
    job.workers.push_back({.machine = job.ranks[i].machine,
                           .threads = 4,
                           .cores = 4,
                           .of_rank = static_cast<int32_t>(i)});
  }
  Fit(job, headroom, read);
  return job;
}

PlayedJob BalancedGpuJob(uint64_t seed) {
  Draw draw(seed, 101);
  return AnyPhotographs(draw);
}

PlayedJob CpuOnlyJob(uint64_t seed) {
  Draw draw(seed, 102);
  return CpuRanks(draw);
}

PlayedJob ScriptJob(uint64_t seed) {
  Draw draw(seed, 103);
  return AnyScript(draw);
}

}  // namespace hetero::insight
