#include "operator/plan/members.h"

namespace hetero::plan {
namespace {

using api::RoleType;
using Runtime = ObservedPod::Runtime;

bool SameProcess(const HeadReport::Member& member, const ObservedPod& pod) {
  return pod.incarnation != 0 && member.incarnation == pod.incarnation;
}

bool AtWork(const HeadReport& report) {
  return report.connected && (report.state == HeadReport::State::kWaiting ||
                              report.state == HeadReport::State::kRunning);
}

}  // namespace

const HeadReport::Member* MemberOf(const Pass& pass, const Slot& slot) {
  const HeadReport* report = pass.Report();
  if (report == nullptr) return nullptr;
  const auto member = report->members.find(slot.member());
  return member == report->members.end() ? nullptr : &member->second;
}

bool HasStarted(const Pass& pass, const Slot& slot) {
  if (slot.pod == nullptr || slot.pod->ended()) return false;
  if (slot.pod->runtime == Runtime::kRunning) return true;
  const HeadReport::Member* member = MemberOf(pass, slot);
  return member != nullptr && SameProcess(*member, *slot.pod);
}

bool WorksAtHead(const Pass& pass, const Slot& slot) {
  const HeadReport::Member* member = MemberOf(pass, slot);
  if (member == nullptr || !AtWork(*pass.Report())) return false;
  if (!member->connected || member->lost) return false;
  return slot.pod == nullptr || member->incarnation > slot.pod->incarnation;
}

bool HeadLostIt(const Pass& pass, const Slot& slot) {
  if (slot.role->type != RoleType::kGpuWorker || !HasStarted(pass, slot)) return false;
  const HeadReport::Member* member = MemberOf(pass, slot);
  return member != nullptr && AtWork(*pass.Report()) && member->lost &&
         SameProcess(*member, *slot.pod);
}

bool LeftUnderEarlierHead(const Pass& pass, const Slot& slot) {
  if (slot.role->type != RoleType::kCpuWorker || !slot.pod->succeeded()) return false;
  const ObservedPod* head = pass.HeadPod();
  const HeadReport* report = pass.Report();
  if (head == nullptr || report == nullptr || !AtWork(*report)) return false;
  if (head->incarnation <= slot.pod->incarnation) return false;
  const HeadReport::Member* member = MemberOf(pass, slot);
  return member == nullptr || !SameProcess(*member, *slot.pod);
}

}  // namespace hetero::plan
