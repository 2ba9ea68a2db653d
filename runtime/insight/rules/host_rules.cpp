#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/insight/figures.h"
#include "runtime/insight/rules/judges.h"
#include "runtime/insight/rules/wording.h"

namespace hetero::insight {
namespace {

// A member whose threads wait for cores, and who has the cores of its machine.
struct Crowded {
  const MemberEvidence* member = nullptr;
  double queue_share = 0;    // of the time in which its threads would have run
  double machine_share = 0;  // of the machine's cores that are in use
  double others_share = 0;   // that are in use by none of this job
  double seconds = 0;        // of training
};

// Cores that members of this job use on one machine.
double OwnCores(const Reading& reading, const MemberEvidence& member) {
  double cores = 0;
  for (const MemberEvidence& other : reading.members()) {
    const bool here = &other == &member || (!member.node.empty() && other.node == member.node);
    if (here && other.seconds > 0) cores += CpuSeconds(other) / other.seconds;
  }
  return cores;
}

// Share of the time of its pipeline's threads that they wait for cores. Threads that sleep or read
// want few cores, and lose little where they get none at once.
double QueueShareOfThreads(const MemberEvidence& member) {
  const ThreadGroupEvidence* pipeline = FindGroup(member, "pipeline");
  const double threads =
      pipeline != nullptr && pipeline->threads > 0 ? pipeline->threads : std::ceil(member.cores);
  if (threads <= 0 || member.seconds <= 0) return 1;
  return std::min(1.0, member.run_queue_seconds / (threads * member.seconds));
}

// What it costs the training that this member's threads wait for cores.
double LostSeconds(const Reading& reading, const MemberEvidence& member, double queue_share,
                   const Limits& limits) {
  const RankEvidence* rank = reading.FindRank(member.name);
  if (rank != nullptr) {
    const double working = AllSeconds(rank->phases) - rank->phases.wait;
    return std::min(member.run_queue_seconds, queue_share * working);
  }
  if (!reading.WaitsForWork(limits("waitPercent"))) return 0;
  return reading.wait_seconds() * std::min(queue_share, QueueShareOfThreads(member));
}

// The member that costs most, of those whose machine `fits` says is meant.
template <typename Fits>
Crowded MostCrowded(const Reading& reading, const Limits& limits, Fits fits) {
  Crowded most;
  for (const MemberEvidence& member : reading.members()) {
    if (member.kind == MemberKind::kHead || member.machine_cores <= 0) continue;
    Crowded here{.member = &member, .queue_share = RunQueueShare(member)};
    if (here.queue_share <= 0 || 100 * here.queue_share < limits("runQueuePercent")) continue;
    const double others = std::max(0.0, member.machine_busy_cores - OwnCores(reading, member));
    here.others_share = others / member.machine_cores;
    here.machine_share = std::min(1.0, member.machine_busy_cores / member.machine_cores);
    here.seconds = LostSeconds(reading, member, here.queue_share, limits);
    if (here.seconds <= 0 ||
        100 * here.seconds < limits("lostPercent") * reading.window_seconds()) {
      continue;
    }
    if (fits(here) && here.seconds > most.seconds) most = here;
  }
  return most;
}

std::string QueueText(const Crowded& crowded) {
  return absl::StrCat(MemberText(crowded.member->name, crowded.member->node),
                      ": threads that could run wait for a core ", ShareText(crowded.queue_share),
                      " of the time");
}

// Its own quota stops a trainer; a CPU worker that uses all that it has been given only works.
Findings StoppedByQuota(const Reading& reading, const Limits& limits) {
  for (const MemberEvidence* member : reading.Trainers()) {
    const double stopped = member->throttled_seconds.value_or(0);
    if (stopped <= 0 || 100 * stopped < limits("throttledPercent") * member->seconds) continue;
    const std::string field = RoleField(member->role, "template");
    const double cores = std::ceil(member->cores * 1.5);
    return {
        {.message = absl::StrCat(MemberText(member->name, member->node),
                                 " is stopped by its CPU limit of ", SettingText(member->cores),
                                 " cores ", ShareText(stopped / member->seconds), " of the time"),
         .remedy = absl::StrCat("set resources.limits.cpu in ", field, " to ",
                                SettingText(std::max(cores, member->cores + 1))),
         .field = field,
         .member = member->name,
         .seconds = std::min(stopped, reading.window_seconds())}};
  }
  return {};
}

}  // namespace

Findings JudgeOversubscribedHost(const Reading& reading, const Limits& limits) {
  const Crowded crowded = MostCrowded(reading, limits, [&](const Crowded& here) {
    return 100 * here.machine_share >= limits("machineBusyPercent") &&
           100 * here.others_share < limits("othersPercent");
  });
  if (crowded.member == nullptr) return StoppedByQuota(reading, limits);
  const MemberEvidence& member = *crowded.member;
  const std::string field = RoleField(member.role, "template");
  return {{.message = absl::StrCat(QueueText(crowded), ", because this job uses ",
                                   SettingText(OwnCores(reading, member)), " of the ",
                                   SettingText(member.machine_cores), " cores there"),
           .remedy = absl::StrCat("put fewer members on one machine, or set ",
                                  "resources.requests.cpu in ", field, " to ",
                                  SettingText(member.cores), " so that each has its cores"),
           .field = field,
           .member = member.name,
           .seconds = crowded.seconds}};
}

Findings JudgeNoisyNeighbour(const Reading& reading, const Limits& limits) {
  const Crowded crowded = MostCrowded(reading, limits, [&](const Crowded& here) {
    return here.others_share > 0 && 100 * here.others_share >= limits("othersPercent");
  });
  if (crowded.member == nullptr) return {};
  const MemberEvidence& member = *crowded.member;
  const std::string field = RoleField(member.role, "template");
  return {
      {.message = absl::StrCat(QueueText(crowded), ", because processes of others use ",
                               SettingText(crowded.others_share * member.machine_cores), " of the ",
                               SettingText(member.machine_cores), " cores there"),
       .remedy = absl::StrCat("set resources.requests.cpu in ", field, " to ",
                              SettingText(member.cores), ", or keep others off by nodeSelector"),
       .field = field,
       .member = member.name,
       .seconds = crowded.seconds}};
}

Findings JudgeClockSkew(const Reading& reading, const Limits& limits) {
  const MemberEvidence* worst = nullptr;
  double worst_offset = 0;
  for (const MemberEvidence& member : reading.members()) {
    if (!member.clock_offset_seconds) continue;
    const double surely = std::abs(*member.clock_offset_seconds) - member.clock_error_seconds;
    if (surely <= 0 || surely < limits("seconds") || surely <= worst_offset) continue;
    worst = &member;
    worst_offset = surely;
  }
  if (worst == nullptr) return {};
  const double offset = *worst->clock_offset_seconds;
  const std::string node = worst->node.empty() ? "its machine" : "node " + worst->node;
  const std::string error = worst->clock_error_seconds > 0
                                ? ", give or take " + DurationText(worst->clock_error_seconds)
                                : "";
  return {{.message = absl::StrCat("the clock of ", MemberText(worst->name, worst->node), " is ",
                                   DurationText(std::abs(offset)),
                                   offset > 0 ? " ahead of" : " behind", " the head's", error,
                                   ", so times of logs and signed requests are wrong there"),
           .remedy = absl::StrCat("let a time service (chrony, NTP) run on ", node,
                                  ", or exclude it by nodeAffinity in ",
                                  RoleField(worst->role, "template")),
           .field = RoleField(worst->role, "template"),
           .member = worst->name}};
}

}  // namespace hetero::insight
