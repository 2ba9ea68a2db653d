#include "tests/unit/runtime/insight/rules/examples.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"

namespace hetero::insight {
namespace {

constexpr int kMoments = 120;

MemberEvidence UsualWorker(int index) {
  MemberEvidence worker{.name = absl::StrCat("cpu-", index), .role = "cpu"};
  worker.node = absl::StrCat("c", index);
  worker.seconds = 60;
  worker.groups = {
      {.name = "pipeline", .cpu_seconds = 320, .threads = 8, .busiest_thread_seconds = 41},
      {.name = "grpc", .cpu_seconds = 4, .threads = 2, .busiest_thread_seconds = 3}};
  worker.run_queue_seconds = 10;
  worker.cores = worker.machine_cores = 8;
  worker.machine_busy_cores = 5.6;
  worker.memory_limit_bytes = int64_t{16} << 30;
  worker.clock_offset_seconds = 0.001;
  worker.clock_error_seconds = 0.001;
  worker.batches = 150;
  worker.samples = 9600;
  worker.bytes = 9600 * int64_t{150528};
  worker.busy_seconds = 45;
  worker.work_seconds = 45;
  worker.read_seconds = 4.5;
  worker.operators = {{.samples = 150, .cpu_seconds = 2.25},
                      {.samples = 150, .cpu_seconds = 1.5},
                      {.samples = 150, .cpu_seconds = 1.25}};
  worker.storage = {.requests = 2000, .retries = 4, .bytes = 1'000'000'000, .seconds = 60};
  return worker;
}

MemberEvidence UsualTrainer(int index) {
  MemberEvidence trainer{.name = absl::StrCat("gpu-", index), .role = "gpu"};
  trainer.kind = MemberKind::kTrainer;
  trainer.node = absl::StrCat("g", index);
  trainer.seconds = 60;
  trainer.groups = {
      {.name = "train", .cpu_seconds = 48, .threads = 4, .busiest_thread_seconds = 45},
      {.name = "feed", .cpu_seconds = 6, .threads = 2, .busiest_thread_seconds = 4}};
  trainer.run_queue_seconds = 1;
  trainer.received_bytes = 19200 * int64_t{150528};
  trainer.cores = 8;
  trainer.machine_cores = 16;
  trainer.machine_busy_cores = 2;
  trainer.memory_limit_bytes = int64_t{32} << 30;
  for (int i = 1; i <= kMoments; ++i) {
    trainer.moments.push_back({.at_seconds = i * 0.5,
                               .seconds = 0.5,
                               .cpu_share = 0.11,
                               .io_pressure = 0.01,
                               .rss_bytes = 4'000'000'000,
                               .gpus = {{.index = 0,
                                         .utilization = 0.93,
                                         .memory_used_bytes = 64'000'000'000,
                                         .memory_total_bytes = 80'000'000'000}}});
  }
  return trainer;
}

using Change = std::function<void(Evidence&)>;

void EachGpu(Evidence& evidence, double utilization, double memory) {
  for (MemberEvidence& member : evidence.members) {
    for (Moment& moment : member.moments) {
      for (GpuMoment& gpu : moment.gpus) {
        gpu.utilization = utilization;
        gpu.memory_used_bytes = static_cast<int64_t>(memory * 80e9);
      }
    }
  }
}

void BeScript(Evidence& evidence) {
  evidence.job.script = true;
  for (RankEvidence& rank : evidence.ranks) {
    rank.phases = {.wait = 0.6, .other = 59.4};
    rank.step_seconds.clear();
  }
}

void InputBound(Evidence& e) { LetWait(e, 24); }

void StorageBound(Evidence& e) {
  LetWait(e, 24);
  for (int i = 0; i < 4; ++i) {
    e.members[i].busy_seconds = e.members[i].work_seconds = 60;
    e.members[i].read_seconds = 45;
    e.members[i].storage = {
        .requests = 9600, .retries = 4, .bytes = 1'056'000'000, .seconds = 2304};
  }
  e.job.orders = {{.shuffle = "Full", .requests = 64}, {.shuffle = "Block of 64", .requests = 2}};
}

void NetworkBound(Evidence& e) {
  LetWait(e, 24);
  for (RankEvidence& rank : e.ranks) rank.waits = {.workers = 6, .transfer = 18};
  for (int i = 0; i < 4; ++i) e.members[i].busy_seconds = 36;
}

void OneHotOperator(Evidence& e) {
  LetWait(e, 24);
  e.job.pipeline[1] = {.op = "Python", .function = "augment.cutout"};
  for (int i = 0; i < 4; ++i) {
    e.members[i].operators[1] = {.samples = 150, .cpu_seconds = 14, .python_seconds = 12};
  }
}

void Dataloader(Evidence& e) {
  LetWait(e, 24);
  for (int i = 0; i < 4; ++i) {
    e.members[i].groups[0] = {
        .name = "pipeline", .cpu_seconds = 120, .threads = 2, .busiest_thread_seconds = 60};
    e.members[i].machine_busy_cores = 2.4;
  }
}

void SlowWorker(Evidence& e) {
  LetWait(e, 12);
  for (int i = 0; i < 4; ++i) e.members[i].busy_seconds = 60;
  e.members[2].samples = 2400;
}

void IdleWorkers(Evidence& e) {
  for (int i = 0; i < 4; ++i) e.members[i].busy_seconds = 18;
}

void OversubscribedHost(Evidence& e) {
  LetWait(e, 24);
  for (int i = 0; i < 4; ++i) {
    e.members[i].node = "c0";
    e.members[i].groups[0].cpu_seconds = 112;
    e.members[i].run_queue_seconds = 348;
    e.members[i].machine_busy_cores = 7.8;
  }
}

void NoisyNeighbour(Evidence& e) {
  LetWait(e, 24);
  e.members[1].groups[0].cpu_seconds = 176;
  e.members[1].run_queue_seconds = 270;
  e.members[1].machine_busy_cores = 8;
}

void ClockSkew(Evidence& e) { e.members[3].clock_offset_seconds = -41.5; }

void HostMemoryGrowth(Evidence& e) {
  for (int i = 0; i < kMoments; ++i) {
    e.members[4].moments[i].rss_bytes = 20'000'000'000 + int64_t{25'000'000} * i;
  }
}

void SlowRank(Evidence& e) {
  e.ranks[0].phases = {.wait = 0.6,
                       .host_to_device = 1,
                       .forward = 10,
                       .backward = 22,
                       .all_reduce = 24.4,
                       .optimizer = 2};
  e.ranks[1].phases = {.wait = 0.6,
                       .host_to_device = 1,
                       .forward = 16,
                       .backward = 37.4,
                       .all_reduce = 3,
                       .optimizer = 2};
}

void StepOutlier(Evidence& e) {
  for (int i = 0; i < 12; ++i) e.ranks[0].step_seconds[i * 20] = 1.2;
}

void SmallBatches(Evidence& e) {
  e.job.batch_size = 4;
  for (RankEvidence& rank : e.ranks) {
    rank.steps = 3000;
    rank.phases = {.wait = 0.6,
                   .host_to_device = 6,
                   .forward = 7.4,
                   .backward = 16,
                   .all_reduce = 18,
                   .optimizer = 12};
  }
}

void GilBound(Evidence& e) {
  BeScript(e);
  EachGpu(e, 0.3, 0.8);
  for (int i = 4; i < 6; ++i) {
    e.members[i].groups[0] = {
        .name = "python", .cpu_seconds = 60, .threads = 6, .busiest_thread_seconds = 15};
  }
}

void ScriptBlocked(Evidence& e) {
  BeScript(e);
  EachGpu(e, 0.02, 0.8);
  for (int i = 4; i < 6; ++i) {
    e.members[i].groups[0] = {
        .name = "python", .cpu_seconds = 1.8, .threads = 6, .busiest_thread_seconds = 1.5};
  }
}

void CpuBottleneck(Evidence& e) {
  for (int i = 0; i < 72; ++i) {
    e.members[4].moments[i].cpu_share = 0.98;
    e.members[4].moments[i].gpus[0].utilization = 0.04;
  }
}

void IoBottleneck(Evidence& e) {
  for (int i = 0; i < 72; ++i) {
    e.members[4].moments[i].io_pressure = 0.8;
    e.members[4].moments[i].gpus[0].utilization = 0.04;
  }
}

void LoadBalancing(Evidence& e) {
  for (Moment& moment : e.members[5].moments) moment.gpus[0].utilization = 0.72;
}

void GpuMemoryIncrease(Evidence& e) {
  for (int i = 0; i < kMoments; ++i) {
    e.members[4].moments[i].gpus[0].memory_used_bytes = 40'000'000'000 + int64_t{160'000'000} * i;
  }
}

void IdleGpuDollars(Evidence& e) {
  EachGpu(e, 0.6, 0.8);
  for (MemberEvidence& member : e.members) {
    for (size_t i = 0; i < member.moments.size(); i += 2) {
      for (GpuMoment& gpu : member.moments[i].gpus) gpu.utilization = 0.72;
    }
  }
  e.job.roles[0].price_per_hour = 0.68;
  e.job.roles[1].price_per_hour = 3.06;
}

void CheckpointStall(Evidence& e) {
  e.job.checkpoint_seconds = 80;
  e.job.checkpoints = 16;
  e.job.checkpoint_every_steps = 250;
}

void EvaluationShare(Evidence& e) {
  e.job.evaluation_seconds = 300;
  e.job.evaluations = 10;
  e.job.evaluation_every_epochs = 1;
}

void LearningNotMoving(Evidence& e) {
  for (size_t i = 0; i < e.job.losses.size(); ++i) {
    e.job.losses[i].loss = i % 2 == 0 ? 2.31 : 2.29;
  }
}

void LossNotFinite(Evidence& e) {
  for (size_t i = 30; i < e.job.losses.size(); ++i) {
    e.job.losses[i].loss = std::numeric_limits<double>::quiet_NaN();
  }
}

const std::map<std::string_view, Change>& Changes() {
  static const std::map<std::string_view, Change> changes = {
      {"InputBound", InputBound},
      {"StorageBound", StorageBound},
      {"NetworkBound", NetworkBound},
      {"OneHotOperator", OneHotOperator},
      {"Dataloader", Dataloader},
      {"SlowWorker", SlowWorker},
      {"IdleWorkers", IdleWorkers},
      {"OversubscribedHost", OversubscribedHost},
      {"NoisyNeighbour", NoisyNeighbour},
      {"ClockSkew", ClockSkew},
      {"HostMemoryGrowth", HostMemoryGrowth},
      {"SlowRank", SlowRank},
      {"StepOutlier", StepOutlier},
      {"SmallBatches", SmallBatches},
      {"GilBound", GilBound},
      {"ScriptBlocked", ScriptBlocked},
      {"CPUBottleneck", CpuBottleneck},
      {"IOBottleneck", IoBottleneck},
      {"BatchSize", [](Evidence& e) { EachGpu(e, 0.4, 0.3); }},
      {"LowGPUUtilization", [](Evidence& e) { EachGpu(e, 0.4, 0.9); }},
      {"LoadBalancing", LoadBalancing},
      {"GPUMemoryIncrease", GpuMemoryIncrease},
      {"IdleGPUDollars", IdleGpuDollars},
      {"MaxInitializationTime", [](Evidence& e) { e.job.startup_seconds = 1500; }},
      {"CheckpointStall", CheckpointStall},
      {"EvaluationShare", EvaluationShare},
      {"LearningNotMoving", LearningNotMoving},
      {"LossNotFinite", LossNotFinite},
  };
  return changes;
}

}  // namespace

Evidence Usual() {
  Evidence evidence{.window_seconds = 60};
  JobEvidence& job = evidence.job;
  job.roles = {{.name = "cpu", .kind = MemberKind::kCpuWorker, .replicas = 4},
               {.name = "gpu", .kind = MemberKind::kTrainer, .replicas = 2, .gpus_per_replica = 1}};
  job.pipeline = {{.op = "Decode"},
                  {.op = "RandomResizedCrop"},
                  {.op = "ColorJitter"},
                  {.op = "Normalize", .on_trainer = true}};
  job.batch_size = 64;
  job.storage_uri = "s3://photos/train";
  job.learning_rate = 0.1;
  job.startup_seconds = 45;
  job.train_seconds = 800;
  job.checkpoint_seconds = 8;
  job.checkpoints = 4;
  job.evaluation_seconds = 20;
  job.evaluations = 4;
  job.steps = 4000;
  job.total_steps = 20000;
  for (int i = 0; i < 40; ++i) job.losses.push_back({.step = 1 + 100 * i, .loss = 2.3 - 0.04 * i});
  for (int i = 0; i < 4; ++i) evidence.members.push_back(UsualWorker(i));
  for (int i = 0; i < 2; ++i) {
    evidence.members.push_back(UsualTrainer(i));
    RankEvidence rank{.rank = i, .member = absl::StrCat("gpu-", i), .steps = 300};
    rank.phases = {.wait = 0.6,
                   .host_to_device = 1.2,
                   .forward = 16,
                   .backward = 36,
                   .all_reduce = 3,
                   .optimizer = 3.2};
    rank.waits = {.workers = 0.5, .handover = 0.1};
    rank.step_seconds.assign(300, 0.2);
    evidence.ranks.push_back(std::move(rank));
  }
  return evidence;
}

void LetWait(Evidence& evidence, double seconds) {
  const double rest = (60 - seconds) / 59.4;
  for (RankEvidence& rank : evidence.ranks) {
    rank.phases = {.wait = seconds,
                   .host_to_device = 1.2 * rest,
                   .forward = 16 * rest,
                   .backward = 36 * rest,
                   .all_reduce = 3 * rest,
                   .optimizer = 3.2 * rest};
    rank.waits = {.workers = seconds};
  }
}

Evidence ExampleOf(std::string_view rule) {
  Evidence evidence = Usual();
  Changes().at(rule)(evidence);
  return evidence;
}

}  // namespace hetero::insight
