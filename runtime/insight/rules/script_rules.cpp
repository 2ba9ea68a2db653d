#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "runtime/insight/figures.h"
#include "runtime/insight/rules/judges.h"
#include "runtime/insight/rules/statistics.h"
#include "runtime/insight/rules/wording.h"

namespace hetero::insight {
namespace {

// Mean utilisation of a member's GPUs, 0..1; absent: it has none, or they have no counters.
std::optional<double> OwnGpus(const MemberEvidence& member) {
  std::vector<double> means;
  for (const auto& [index, series] : GpuUtilization(member)) means.push_back(Mean(series));
  if (means.empty()) return std::nullopt;
  return Mean(means);
}

// Cores that the script and its children use, without those of the process that feeds them.
double ScriptCores(const MemberEvidence& member) {
  double seconds = 0;
  for (const std::string_view name : {"python", "train", "other"}) {
    const ThreadGroupEvidence* group = FindGroup(member, name);
    if (group != nullptr) seconds += group->cpu_seconds;
  }
  return member.seconds > 0 ? seconds / member.seconds : 0;
}

// Several threads of Python use one core between them.
bool HoldsTheLock(const MemberEvidence& member, const Limits& limits) {
  const ThreadGroupEvidence* python = FindGroup(member, "python");
  if (python == nullptr || python->threads < 2 || member.seconds <= 0 || member.cores < 2) {
    return false;
  }
  const double cores = python->cpu_seconds / member.seconds;
  return cores >= limits("fewestCores") && cores <= limits("mostCores") &&
         100 * python->busiest_thread_seconds <= limits("busiestPercent") * python->cpu_seconds &&
         100 * OwnGpus(member).value_or(0) < limits("gpuPercent");
}

// What the script does beside waiting for data.
double Rest(const RankEvidence& rank) { return AllSeconds(rank.phases) - rank.phases.wait; }

}  // namespace

Findings JudgeGilBound(const Reading& reading, const Limits& limits) {
  if (!reading.job().script) return {};
  for (const MemberEvidence* member : reading.Trainers()) {
    if (!HoldsTheLock(*member, limits)) continue;
    const ThreadGroupEvidence& python = *FindGroup(*member, "python");
    const RankEvidence& rank = *reading.FindRank(member->name);
    const std::optional<double> gpus = OwnGpus(*member);
    // On a GPU what it idles; else what the threads could do at once, if all of it were Python's.
    const double at_once = std::min<double>(python.threads, member->cores);
    const double lost = gpus ? 1 - *gpus : 1 - 1 / at_once;
    return {
        {.message = absl::StrCat(
             Count(python.threads, "thread"), " of Python of ",
             MemberText(member->name, member->node), " use ",
             FixedText(python.cpu_seconds / member->seconds, 1), " of ", SettingText(member->cores),
             " cores between them",
             gpus ? absl::StrCat(" while GPUs are busy ", ShareText(*gpus), " of the time") : "",
             ": they wait for the interpreter's lock"),
         .remedy = "move what the script's threads do with each sample into pipeline (a Python "
                   "or native operator runs on the CPU workers), or start processes instead of "
                   "threads in training.script.command's program",
         .field = "pipeline",
         .member = member->name,
         .seconds = Rest(rank) * lost}};
  }
  return {};
}

Findings JudgeScriptBlocked(const Reading& reading, const Limits& limits) {
  if (!reading.job().script) return {};
  const MemberEvidence* idlest = nullptr;
  int64_t blocked = 0;
  for (const MemberEvidence* member : reading.Trainers()) {
    const RankEvidence& rank = *reading.FindRank(member->name);
    const double all = AllSeconds(rank.phases);
    if (member->seconds <= 0 || member->groups.empty() || all <= 0) continue;
    if (100 * Rest(rank) < limits("restPercent") * all) continue;
    if (100 * ScriptCores(*member) >= limits("cpuPercent")) continue;
    if (100 * OwnGpus(*member).value_or(0) >= limits("gpuPercent")) continue;
    ++blocked;
    if (idlest == nullptr || ScriptCores(*member) < ScriptCores(*idlest)) idlest = member;
  }
  if (idlest == nullptr) return {};
  const double seconds = Rest(*reading.FindRank(idlest->name));
  return {
      {.message = absl::StrCat(
           "the script of ", MemberText(idlest->name, idlest->node), " does not wait for data ",
           ShareText(seconds / AllSeconds(reading.FindRank(idlest->name)->phases)),
           " of its time, yet uses ", ShareText(ScriptCores(*idlest)), " of a core",
           OwnGpus(*idlest) ? absl::StrCat(" and ", ShareText(*OwnGpus(*idlest)), " of its GPUs")
                            : "",
           blocked > 1 ? absl::StrCat(" (so do ", blocked - 1, " more)") : ""),
       .remedy = "look where the program of training.script.command waits (py-spy dump --pid): "
                 "for a file, a lock, a server, or another rank",
       .field = "training.script",
       .member = idlest->name,
       .seconds = seconds}};
}

}  // namespace hetero::insight
