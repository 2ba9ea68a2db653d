#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/insight/rules/judges.h"
#include "runtime/insight/rules/wording.h"

namespace hetero::insight {
namespace {

struct Shares {
  double all = 0, met = 0;  // seconds
  double share() const { return all > 0 ? met / all : 0; }
};

bool GpusBelow(const Moment& moment, double percent) {
  for (const GpuMoment& gpu : moment.gpus) {
    if (100 * gpu.utilization >= percent) return false;
  }
  return true;
}

// Of the time in which GPUs have counters, that in which `busy` holds while they do nothing.
template <typename Busy>
Shares IdleWhile(const MemberEvidence& member, double gpu_percent, Busy busy) {
  Shares shares;
  for (const Moment& moment : member.moments) {
    if (moment.gpus.empty()) continue;
    shares.all += moment.seconds;
    if (busy(moment) && GpusBelow(moment, gpu_percent)) shares.met += moment.seconds;
  }
  return shares;
}

}  // namespace

Findings JudgeCpuBottleneck(const Reading& reading, const Limits& limits) {
  for (const MemberEvidence& member : reading.members()) {
    const Shares shares = IdleWhile(member, limits("gpuPercent"), [&](const Moment& moment) {
      return 100 * moment.cpu_share > limits("cpuPercent");
    });
    if (shares.met <= 0 || 100 * shares.share() <= limits("timePercent")) continue;
    const RoleEvidence* role = reading.CpuRole();
    const std::string field = role == nullptr ? "roles" : RoleField(role->name, "replicas");
    return {{.message = absl::StrCat(
                 MemberText(member.name, member.node), ": all cores are busy and its GPUs below ",
                 limits("gpuPercent"), " % in ", ShareText(shares.share()), " of the time"),
             .remedy = role == nullptr
                           ? "add a role of type CPUWorker to roles, with replicas: 1"
                           : absl::StrCat("set ", field, " to ", role->replicas + 1,
                                          ", and placement of the last operators to CPUWorker"),
             .field = field,
             .member = member.name,
             .seconds = shares.met}};
  }
  return {};
}

Findings JudgeIoBottleneck(const Reading& reading, const Limits& limits) {
  for (const MemberEvidence& member : reading.members()) {
    const Shares shares = IdleWhile(member, limits("gpuPercent"), [&](const Moment& moment) {
      return 100 * moment.io_pressure.value_or(0) > limits("ioPercent");
    });
    if (shares.met <= 0 || 100 * shares.share() <= limits("timePercent")) continue;
    return {{.message = absl::StrCat(MemberText(member.name, member.node),
                                     ": tasks wait for disks and its GPUs are below ",
                                     limits("gpuPercent"), " % in ", ShareText(shares.share()),
                                     " of the time"),
             .remedy = "set dataset.shuffle.mode to Block, which reads in sequence, or copy the "
                       "dataset to a faster disk and set dataset.uri to it",
             .field = "dataset.shuffle.mode",
             .member = member.name,
             .seconds = shares.met}};
  }
  return {};
}

}  // namespace hetero::insight
