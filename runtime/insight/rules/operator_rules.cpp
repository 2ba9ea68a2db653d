#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/insight/figures.h"
#include "runtime/insight/rules/judges.h"
#include "runtime/insight/rules/wording.h"

namespace hetero::insight {
namespace {

struct Cost {  // of one sample, in CPU seconds
  double all = 0, python = 0;
};

// By entry of the pipeline, of all CPU workers; 0 where nothing was measured.
std::vector<Cost> CostPerSample(const Reading& reading) {
  std::vector<Cost> costs(reading.job().pipeline.size());
  for (size_t entry = 0; entry < costs.size(); ++entry) {
    double samples = 0;
    for (const MemberEvidence* worker : reading.CpuWorkers()) {
      if (entry >= worker->operators.size()) continue;
      const OperatorEvidence& op = worker->operators[entry];
      samples += static_cast<double>(op.samples);
      costs[entry].all += op.cpu_seconds;
      costs[entry].python += op.python_seconds;
    }
    if (samples <= 0) {
      costs[entry] = {};
      continue;
    }
    costs[entry].all /= samples;
    costs[entry].python = std::min(costs[entry].python / samples, costs[entry].all);
  }
  return costs;
}

// Share of the CPU workers' cores that are in use, 0..1.
double WorkersCpuShare(const Reading& reading) {
  double used = 0, all = 0;
  for (const MemberEvidence* worker : reading.CpuWorkers()) {
    used += CpuSeconds(*worker);
    all += worker->cores * worker->seconds;
  }
  return all > 0 ? used / all : 0;
}

// Nothing can take the place of Decode: who needs it faster needs more workers.
bool Replaceable(const PipelineEntry& entry) { return !entry.on_trainer && entry.op != "Decode"; }

Finding HotOperator(const Reading& reading, size_t entry, const Cost& cost, double all) {
  const PipelineEntry& hot = reading.job().pipeline[entry];
  const double share = cost.all / all;
  const std::string field = absl::StrCat("pipeline[", entry, "]");
  const std::string of_all =
      absl::StrCat(DurationText(cost.all), " of the pipeline's ", DurationText(all),
                   " of CPU per sample (", ShareText(share), ")");
  Finding finding{.field = field, .seconds = reading.wait_seconds() * share};
  if (cost.python > 0) {
    constexpr double kMostTold = 0.99;  // beyond it the factor is mostly what was measured wrong
    const std::string name = hot.function.empty() ? hot.op : hot.function;
    finding.message = absl::StrCat(
        "the Python operator ", name, " takes ", of_all,
        "; a native operator in its place saves at most this",
        share <= kMostTold
            ? absl::StrCat(", which makes workers ", TimesText(1 / (1 - share)), " as fast")
            : "");
    finding.remedy = absl::StrCat("set op of ", field,
                                  " to a native operator, or to Plugin with the function in C++");
    return finding;
  }
  finding.message = absl::StrCat(hot.op, " takes ", of_all, " and trainers wait for it");
  finding.remedy =
      absl::StrCat("make the parameters of ", field, " (", hot.op,
                   ") cheaper, place it behind operators that make pictures smaller, or set its "
                   "placement to Trainer");
  return finding;
}

// The CPU workers of one machine.
struct Crew {
  const MemberEvidence* first = nullptr;
  double threads = 0, cores = 0;
  double free_share = 1;  // of the machine's cores; nothing known: 1
};

std::vector<Crew> Crews(const Reading& reading) {
  std::vector<Crew> crews;
  for (const MemberEvidence* worker : reading.CpuWorkers()) {
    const ThreadGroupEvidence* group = FindGroup(*worker, "pipeline");
    if (group == nullptr || group->threads == 0 || worker->cores <= 0) continue;
    auto crew = std::find_if(crews.begin(), crews.end(), [&](const Crew& other) {
      return !worker->node.empty() && other.first->node == worker->node;
    });
    if (crew == crews.end()) crew = crews.insert(crews.end(), Crew{.first = worker});
    crew->threads += group->threads;
    crew->cores += worker->cores;
    if (worker->machine_cores > 0) {
      crew->cores = std::min(crew->cores, worker->machine_cores);
      crew->free_share = 1 - std::min(1.0, worker->machine_busy_cores / worker->machine_cores);
    }
  }
  return crews;
}

// The first that is wrong: too many threads, or too few while cores are free.
Crew WorstCrew(const Reading& reading, const Limits& limits) {
  for (const Crew& crew : Crews(reading)) {
    const double percent = 100 * crew.threads / crew.cores;
    const bool few = percent < limits("fewestThreadsPercent") &&
                     100 * crew.free_share >= limits("freeCoresPercent");
    if (few || percent > limits("mostThreadsPercent")) return crew;
  }
  return {};
}

}  // namespace

Findings JudgeOneHotOperator(const Reading& reading, const Limits& limits) {
  if (!reading.WaitsForWork(limits("waitPercent"))) return {};
  if (100 * WorkersCpuShare(reading) < limits("cpuPercent")) return {};
  const std::vector<Cost> costs = CostPerSample(reading);
  double all = 0;
  for (const Cost& cost : costs) all += cost.all;
  const auto hot = std::max_element(costs.begin(), costs.end(),
                                    [](const Cost& a, const Cost& b) { return a.all < b.all; });
  if (hot == costs.end() || hot->all <= 0) return {};
  const auto entry = static_cast<size_t>(hot - costs.begin());
  const bool others =
      std::count_if(costs.begin(), costs.end(), [](const Cost& cost) { return cost.all > 0; }) > 1;
  if (!others || !Replaceable(reading.job().pipeline[entry])) return {};
  if (100 * hot->all < limits("sharePercent") * all) return {};
  return {HotOperator(reading, entry, *hot, all)};
}

Findings JudgeDataloader(const Reading& reading, const Limits& limits) {
  if (!reading.WaitsForWork(limits("waitPercent"))) return {};
  const Crew crew = WorstCrew(reading, limits);
  if (crew.first == nullptr) return {};
  const bool few = crew.threads < crew.cores;
  const std::string field = RoleField(crew.first->role, "template");
  const double share = few ? 1 - crew.threads / crew.cores : 1 - crew.cores / crew.threads;
  return {{.message = absl::StrCat(
               MemberText(crew.first->name, crew.first->node), ": ", SettingText(crew.threads),
               " pipeline threads for ", SettingText(crew.cores), " cores (",
               ShareText(crew.threads / crew.cores), "), and trainers wait for data"),
           .remedy = absl::StrCat("set resources.", few ? "requests" : "limits", ".cpu in ", field,
                                  " to ", SettingText(few ? crew.cores : crew.threads)),
           .field = field,
           .member = crew.first->name,
           .seconds = reading.wait_seconds() * share}};
}

}  // namespace hetero::insight
