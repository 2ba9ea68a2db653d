#include "tests/unit/runtime/insight/rules/causes.h"

#include <algorithm>
#include <cmath>

#include "tests/unit/runtime/insight/rules/shapes.h"

namespace hetero::insight {
namespace {

PlayedJob SlowDecode(uint64_t seed) {
  Draw draw(seed, 1);
  PlayedJob job = AnyPhotographs(draw);
  job.pipeline[0].cpu_seconds *= draw.Between(4, 7);
  return job;
}

PlayedJob StorageLatency(uint64_t seed) {
  Draw draw(seed, 2);
  PlayedJob job = AnyPhotographs(draw);
  const double headroom = draw.Between(0.4, 0.75);
  Fit(job, headroom, draw.Between(0.65, 0.85));
  return job;
}

PlayedJob StorageThrottling(uint64_t seed) {
  Draw draw(seed, 3);
  PlayedJob job = AnyPhotographs(draw);
  job.store.throttled = draw.Between(0.1, 0.4);
  // Waiting to ask again takes several times as long as all that is done with a sample.
  job.store.backoff_seconds = draw.Between(2.5, 5) * CpuPerSample(job) / job.store.throttled;
  return job;
}

PlayedJob NarrowNetwork(uint64_t seed) {
  Draw draw(seed, 4);
  PlayedJob job = AnyPhotographs(draw);
  Connect(job, draw.Between(0.4, 0.75));
  return job;
}

PlayedJob OneSlowWorker(uint64_t seed) {
  Draw draw(seed, 5);
  const int32_t ranks = draw.Whole(1, 4);
  PlayedJob job = Photographs(draw, ranks, draw.Whole(2, 3), 1.05);
  job.workers[draw.Whole(0, static_cast<int32_t>(job.workers.size()) - 1)].slowness =
      draw.Between(4, 8);
  return job;
}

PlayedJob OneSlowRank(uint64_t seed) {
  Draw draw(seed, 6);
  const int32_t ranks = draw.Whole(2, 4);
  const int32_t workers = draw.Whole(2, 6);
  PlayedJob job = Photographs(draw, ranks, workers, draw.Between(1.3, 1.6));
  job.ranks[draw.Whole(0, ranks - 1)].slowness = draw.Between(1.35, 2);
  return job;
}

// All processes on one machine that has too few cores for their threads.
PlayedJob CrowdedHost(uint64_t seed) {
  Draw draw(seed, 7);
  const int32_t ranks = draw.Whole(1, 2);
  const int32_t workers = draw.Whole(2, 4);
  PlayedJob job = Photographs(draw, ranks, workers, draw.Between(1.1, 1.4));
  double threads = 0;
  for (const PlayedWorker& worker : job.workers) threads += worker.threads;
  const double cores = std::max(2.0, std::floor(threads / draw.Between(1.8, 3)));
  job.machines = {{"one", {.cores = cores}}};
  for (PlayedWorker& worker : job.workers) {
    worker.machine = "one";
    worker.cores = cores;
  }
  for (PlayedRank& rank : job.ranks) {
    rank.machine = "one";
    rank.cores = cores;
  }
  return job;
}

// On a CPU worker's machine, or on the one of a rank that computes on its CPU.
PlayedJob Neighbour(uint64_t seed) {
  Draw draw(seed, 8);
  if (draw.Coin()) {
    PlayedJob job = CpuRanks(draw);
    PlayedMachine& machine = job.machines[job.ranks[0].machine];
    machine.other_threads = machine.cores * draw.Between(0.8, 2);
    return job;
  }
  const int32_t ranks = draw.Whole(1, 4);
  PlayedJob job = Photographs(draw, ranks, draw.Whole(2, 3), 1.05);
  PlayedMachine& machine = job.machines["c0"];
  machine.other_threads = machine.cores * draw.Between(2.5, 5);
  return job;
}

PlayedJob FewSamples(uint64_t seed) {
  Draw draw(seed, 9);
  PlayedJob job = AnyPhotographs(draw);
  job.batch = 2 << draw.Whole(0, 2);
  job.step = {.host_to_device = 0.0005,
              .forward = 0.001 + 0.0002 * job.batch,
              .backward = 0.002 + 0.0004 * job.batch,
              .all_reduce = draw.Between(0.008, 0.012)};
  job.step.optimizer = draw.Between(0.006, 0.012);
  Fit(job, draw.Between(1.5, 2), 0.1);
  Connect(job, 5);
  job.checkpoint_every = 0;
  job.evaluation_every = 0;
  return job;
}

PlayedJob HotOperator(Draw& draw, bool python) {
  PlayedJob job = AnyPhotographs(draw);
  const double others = CpuPerSample(job);
  job.pipeline.insert(job.pipeline.begin() + 3, {.op = python ? "Python" : "GaussianBlur",
                                                 .cpu_seconds = others * draw.Between(2.2, 6),
                                                 .python = python});
  return job;
}

PlayedJob HotNative(uint64_t seed) {
  Draw draw(seed, 10);
  return HotOperator(draw, false);
}

PlayedJob HotPython(uint64_t seed) {
  Draw draw(seed, 11);
  return HotOperator(draw, true);
}

PlayedJob LockedScript(uint64_t seed) {
  Draw draw(seed, 12);
  PlayedJob job = AnyScript(draw);
  job.script->python_threads = draw.Whole(3, 8);
  job.script->share_the_lock = true;
  return job;
}

PlayedJob BlockedScript(uint64_t seed) {
  Draw draw(seed, 13);
  PlayedJob job = AnyScript(draw);
  if (!job.gpus) job.step = {.forward = 0.02, .backward = 0.04};
  const double cores = job.gpus ? 1 : 8;
  job.script->blocked_seconds = StepSeconds(job) * cores * draw.Between(14, 20);
  return job;
}

PlayedJob LongCheckpoints(uint64_t seed) {
  Draw draw(seed, 14);
  PlayedJob job = AnyPhotographs(draw);
  job.checkpoint_every = static_cast<int64_t>(draw.Between(8, 15) / StepSeconds(job));
  job.checkpoint_seconds = draw.Between(1.5, 5);
  return job;
}

PlayedJob LongEvaluations(uint64_t seed) {
  Draw draw(seed, 15);
  PlayedJob job = AnyPhotographs(draw);
  job.evaluation_every = static_cast<int64_t>(draw.Between(8, 12) / StepSeconds(job));
  job.evaluation_seconds = draw.Between(4.5, 12);
  return job;
}

PlayedJob LearnsNothing(uint64_t seed) {
  Draw draw(seed, 16);
  PlayedJob job = AnyPhotographs(draw);
  TakeSmallerSteps(job);
  job.learns = false;
  return job;
}

PlayedJob NoFiniteLoss(uint64_t seed) {
  Draw draw(seed, 17);
  PlayedJob job = AnyPhotographs(draw);
  if (draw.Coin()) {
    job.not_finite_from = draw.Whole(20, 100);
  } else {
    job.skipped = draw.Between(0.1, 0.5);
  }
  return job;
}

PlayedJob GrowingProcess(uint64_t seed) {
  Draw draw(seed, 18);
  PlayedJob job = AnyPhotographs(draw);
  (draw.Coin() ? job.worker_rss_growth : job.ranks[0].rss_growth) = draw.Between(1e7, 6e7);
  return job;
}

PlayedJob TooManyWorkers(uint64_t seed) {
  Draw draw(seed, 19);
  const int32_t ranks = draw.Whole(1, 4);
  const int32_t workers = draw.Whole(4, 8);
  return Photographs(draw, ranks, workers, draw.Between(3, 8));
}

PlayedJob WrongClock(uint64_t seed) {
  Draw draw(seed, 20);
  PlayedJob job = AnyPhotographs(draw);
  const double sign = draw.Coin() ? 1 : -1;
  job.machines["c1"].clock_offset = sign * draw.Between(1.5, 600);
  return job;
}

PlayedJob FewKernels(uint64_t seed) {
  Draw draw(seed, 21);
  PlayedJob job = AnyPhotographs(draw);
  for (PlayedRank& rank : job.ranks) {
    rank.kernel_share = draw.Between(0.2, 0.55);
    rank.gpu_memory = draw.Between(0.8, 0.95);
  }
  job.evaluation_every = 0;
  return job;
}

PlayedJob GrowingGpuMemory(uint64_t seed) {
  Draw draw(seed, 22);
  PlayedJob job = AnyPhotographs(draw);
  for (PlayedRank& rank : job.ranks) rank.gpu_memory = 0.4;
  job.ranks.back().gpu_memory_growth = draw.Between(0.15, 0.35);
  return job;
}

PlayedJob RoomOnGpus(uint64_t seed) {
  Draw draw(seed, 23);
  PlayedJob job = AnyPhotographs(draw);
  const double share = draw.Between(0.3, 0.6);
  for (PlayedRank& rank : job.ranks) {
    rank.kernel_share = share;
    rank.gpu_memory = draw.Between(0.1, 0.5);
  }
  job.evaluation_every = 0;
  return job;
}

PlayedJob SlowStart(uint64_t seed) {
  Draw draw(seed, 24);
  PlayedJob job = AnyPhotographs(draw);
  job.startup_seconds = draw.Between(1300, 4000);
  return job;
}

PlayedJob BusyGpuHost(uint64_t seed) {
  Draw draw(seed, 25);
  return OwnCores(draw, draw.Between(0.03, 0.06), 0.02);
}

PlayedJob SlowDisk(uint64_t seed) {
  Draw draw(seed, 26);
  PlayedJob job = OwnCores(draw, draw.Between(0.03, 0.06), 0.9);
  job.store.disk = true;
  return job;
}

PlayedJob HiccupingSteps(uint64_t seed) {
  Draw draw(seed, 27);
  const int32_t workers = draw.Whole(2, 6);
  PlayedJob job = Photographs(draw, 1, workers, draw.Between(1.3, 1.6));
  TakeSmallerSteps(job);
  job.step.outliers = draw.Between(0.05, 0.07);
  job.step.outlier_seconds = StepSeconds(job) * draw.Between(8, 14);
  return job;
}

PlayedJob FewThreads(uint64_t seed) {
  Draw draw(seed, 28);
  const int32_t ranks = draw.Whole(1, 4);
  const int32_t workers = draw.Whole(1, 3);
  PlayedJob job = Photographs(draw, ranks, workers, draw.Between(0.4, 0.7));
  for (PlayedWorker& worker : job.workers) {
    worker.cores = std::floor(worker.threads * draw.Between(2, 4));
    job.machines[worker.machine].cores = worker.cores;
  }
  return job;
}

}  // namespace

const std::vector<Cause>& AllCauses() {
  static const std::vector<Cause> causes = {
      {"SlowDecode", "InputBound", "the trainers could take", SlowDecode},
      {"StorageLatency", "StorageBound", "s3://photos/train, whose requests take", StorageLatency},
      {"StorageThrottling", "StorageBound", "asks to slow down", StorageThrottling},
      {"NarrowNetwork", "NetworkBound", "on their way", NarrowNetwork},
      {"OneSlowWorker", "SlowWorker", "its neighbours", OneSlowWorker},
      {"OneSlowRank", "SlowRank", "the others", OneSlowRank},
      {"CrowdedHost", "OversubscribedHost", "because this job uses", CrowdedHost},
      {"Neighbour", "NoisyNeighbour", "processes of others", Neighbour},
      {"FewSamples", "SmallBatches", "does not depend on the batch", FewSamples},
      {"HotNative", "OneHotOperator", "GaussianBlur takes", HotNative},
      {"HotPython", "OneHotOperator", "a native operator in its place saves", HotPython},
      {"LockedScript", "GilBound", "the interpreter's lock", LockedScript},
      {"BlockedScript", "ScriptBlocked", "does not wait for data", BlockedScript},
      {"LongCheckpoints", "CheckpointStall", "of the training", LongCheckpoints},
      {"LongEvaluations", "EvaluationShare", "of the training", LongEvaluations},
      {"LearnsNothing", "LearningNotMoving", "the loss is", LearnsNothing},
      {"NoFiniteLoss", "LossNotFinite", "finite", NoFiniteLoss},
      {"GrowingProcess", "HostMemoryGrowth", "a minute", GrowingProcess},
      {"TooManyWorkers", "IdleWorkers", "have work", TooManyWorkers},
      {"WrongClock", "ClockSkew", "the head's, give or take", WrongClock},
      {"FewKernels", "LowGPUUtilization", "of the time", FewKernels},
      {"GrowingGpuMemory", "GPUMemoryIncrease", "has grown", GrowingGpuMemory},
      {"RoomOnGpus", "BatchSize", "of their memory", RoomOnGpus},
      {"SlowStart", "MaxInitializationTime", "after the job was created", SlowStart},
      {"BusyGpuHost", "CPUBottleneck", "all cores are busy", BusyGpuHost},
      {"SlowDisk", "StorageBound", "file:///data/photos", SlowDisk},
      {"HiccupingSteps", "StepOutlier", "took more than", HiccupingSteps},
      {"FewThreads", "Dataloader", "pipeline threads", FewThreads},
  };
  return causes;
}

}  // namespace hetero::insight
