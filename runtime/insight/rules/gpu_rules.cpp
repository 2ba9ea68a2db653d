#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/insight/figures.h"
#include "runtime/insight/rules/judges.h"
#include "runtime/insight/rules/statistics.h"
#include "runtime/insight/rules/wording.h"

namespace hetero::insight {
namespace {

constexpr size_t kFewestMoments = 10;  // of which a percentile says something

struct Gpu {
  const MemberEvidence* member = nullptr;
  int32_t index = 0;
  std::vector<double> utilization, memory;  // shares; memory may be empty
};

// Of members as they come, by index; those with too few moments are left out.
std::vector<Gpu> AllGpus(const Reading& reading) {
  std::vector<Gpu> gpus;
  for (const MemberEvidence& member : reading.members()) {
    auto memory = GpuMemoryShare(member);
    for (auto& [index, utilization] : GpuUtilization(member)) {
      if (utilization.size() < kFewestMoments) continue;
      gpus.push_back({&member, index, utilization, memory[index]});
    }
  }
  return gpus;
}

std::string GpuText(const Gpu& gpu) {
  return absl::StrCat("GPU ", gpu.index, " of ", MemberText(gpu.member->name, gpu.member->node));
}

// Seconds of training that would go if GPUs were as busy as they can be.
double IdleSeconds(const Reading& reading, const Gpu& gpu) {
  return reading.window_seconds() * (1 - Mean(gpu.utilization));
}

double CpuPercentile(const MemberEvidence& member, double percent) {
  std::vector<double> shares;
  for (const Moment& moment : member.moments) shares.push_back(moment.cpu_share);
  return 100 * Percentile(std::move(shares), percent);
}

}  // namespace

Findings JudgeLowGpuUtilization(const Reading& reading, const Limits& limits) {
  const std::vector<Gpu> gpus = AllGpus(reading);
  const auto high_of = [](const Gpu& gpu) { return 100 * Percentile(gpu.utilization, 95); };
  // One that idles beside busy ones is LoadBalancing's.
  const bool all_low = std::all_of(gpus.begin(), gpus.end(), [&](const Gpu& gpu) {
    return high_of(gpu) < limits("highPercent");
  });
  for (const Gpu& gpu : gpus) {
    const double high = high_of(gpu);
    const double low = 100 * Percentile(gpu.utilization, 5);
    const bool off_and_on = high >= limits("lowPercent") && low < limits("lowPercent");
    if (!all_low && !off_and_on) continue;
    return {{.message = absl::StrCat(
                 GpuText(gpu), " is busy ", ShareText(Mean(gpu.utilization)), " of the time: ",
                 all_low ? absl::StrCat("95 % of it at most ", FixedText(high, 0), " %")
                         : absl::StrCat("5 % of it at most ", FixedText(low, 0),
                                        " %, 5 % at least ", FixedText(high, 0), " %")),
             .remedy = absl::StrCat("set training.batchSizePerWorker to ",
                                    2 * std::max(reading.job().batch_size, 1),
                                    " so that kernels are longer, or train on fewer or smaller "
                                    "GPUs"),
             .field = "training.batchSizePerWorker",
             .member = gpu.member->name,
             .seconds = IdleSeconds(reading, gpu)}};
  }
  return {};
}

Findings JudgeBatchSize(const Reading& reading, const Limits& limits) {
  const std::vector<Gpu> gpus = AllGpus(reading);
  if (gpus.empty()) return {};
  double fullest = 0, busiest = 0, cpu = 0;
  for (const Gpu& gpu : gpus) {
    if (gpu.memory.empty()) return {};
    fullest = std::max(fullest, 100 * Percentile(gpu.memory, 95));
    busiest = std::max(busiest, 100 * Percentile(gpu.utilization, 95));
    cpu = std::max(cpu, CpuPercentile(*gpu.member, 95));
  }
  if (busiest >= limits("gpuPercent") || fullest >= limits("memoryPercent") ||
      cpu >= limits("cpuPercent")) {
    return {};
  }
  const int32_t batch = std::max(reading.job().batch_size, 1);
  const double room = fullest > 0 ? limits("memoryPercent") / fullest : 2;
  auto larger = static_cast<int64_t>(batch * std::clamp(room, 1.25, 4.0));
  constexpr int64_t kRound = 8;
  if (larger >= batch + kRound) larger -= larger % kRound;
  return {{.message = absl::StrCat("with ", Count(batch, "sample"), " a rank, GPUs use ",
                                   FixedText(busiest, 0), " % of their time and ",
                                   FixedText(fullest, 0), " % of their memory, CPUs ",
                                   FixedText(cpu, 0), " %, 95 % of the time at most"),
           .remedy = absl::StrCat("set training.batchSizePerWorker to ",
                                  std::max<int64_t>(larger, batch + 1),
                                  ", and training.optimizer.learningRate with it"),
           .field = "training.batchSizePerWorker",
           .seconds = IdleSeconds(reading, gpus.front())}};
}

Findings JudgeLoadBalancing(const Reading& reading, const Limits& limits) {
  const std::vector<Gpu> gpus = AllGpus(reading);
  if (gpus.size() < 2) return {};
  const Gpu* furthest = nullptr;
  double distance = 0;
  std::vector<double> of_all;
  for (const Gpu& gpu : gpus) {
    std::vector<double> others;
    for (const Gpu& other : gpus) {
      if (&other == &gpu) continue;
      others.insert(others.end(), other.utilization.begin(), other.utilization.end());
    }
    of_all.push_back(Mean(gpu.utilization));
    const double here = HistogramDistance(gpu.utilization, others);
    if (here > distance) {
      distance = here;
      furthest = &gpu;
    }
  }
  if (furthest == nullptr || distance < limits("distance")) return {};
  const bool stages = reading.job().partitions > 1;
  const double idlest = *std::min_element(of_all.begin(), of_all.end());
  const double busiest = *std::max_element(of_all.begin(), of_all.end());
  return {{.message =
               absl::StrCat(GpuText(*furthest), " is busy ", ShareText(Mean(furthest->utilization)),
                            " of the time, GPUs of this job between ", ShareText(idlest), " and ",
                            ShareText(busiest)),
           .remedy = stages ? "set training.parallelism.microbatches to several times "
                              "training.parallelism.partitions"
                            : "give all ranks GPUs of one kind by nodeSelector in the templates of "
                              "roles",
           .field = stages ? "training.parallelism.microbatches" : "roles",
           .member = furthest->member->name,
           .seconds =
               reading.window_seconds() * (busiest - idlest) / static_cast<double>(gpus.size())}};
}

Findings JudgeIdleGpuDollars(const Reading& reading, const Limits& limits) {
  double idle_dollars = 0, dollars = 0, idle = 0, gpus = 0;
  for (const MemberEvidence& member : reading.members()) {
    const RoleEvidence* role = reading.FindRole(member.role);
    if (role == nullptr || !role->price_per_hour || role->gpus_per_replica <= 0) continue;
    const double of_one =
        *role->price_per_hour / role->gpus_per_replica * reading.window_seconds() / kSecondsPerHour;
    for (const auto& [index, utilization] : GpuUtilization(member)) {
      const double share = 1 - Mean(utilization);
      idle += share;
      gpus += 1;
      idle_dollars += share * of_one;
      dollars += of_one;
    }
  }
  if (gpus <= 0 || idle_dollars <= 0 || 100 * idle < limits("idlePercent") * gpus) return {};
  return {{.message = absl::StrCat(Count(static_cast<int64_t>(gpus), "GPU"), " stood idle ",
                                   ShareText(idle / gpus), " of the time: $",
                                   NumberText(idle_dollars), " of $", NumberText(dollars)),
           .remedy = "do first what the other findings say; if there are none, take fewer or "
                     "smaller GPUs (roles[].replicas, roles[].gpusPerReplica)",
           .field = "roles",
           .seconds = reading.window_seconds() * idle / gpus,
           .dollars = idle_dollars}};
}

}  // namespace hetero::insight
