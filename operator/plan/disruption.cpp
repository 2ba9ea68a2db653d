#include "operator/plan/disruption.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/reasons.h"
#include "base/crc32c.h"

namespace hetero::plan {
namespace {

// The head's word that it has heard takes up to a second.
constexpr base::Duration kWarnAgain = std::chrono::seconds(2);
constexpr size_t kMostNamed = 5;
constexpr size_t kMostAnnounced = 8;  // members; a job has only so many events

// Pods that are on their way out are among them: they work to their end.
std::vector<MemberNotice> NoticesOf(const Pass& pass) {
  std::vector<MemberNotice> notices;
  for (const Slot& slot : pass.slots) {
    if (slot.role->type == api::RoleType::kHead || slot.pod == nullptr || slot.pod->ended()) {
      continue;
    }
    const auto node = pass.seen.nodes.find(slot.pod->node);
    if (node == pass.seen.nodes.end()) continue;
    const NodeNotice& notice = node->second.notice;
    if (notice.kind == NodeNotice::Kind::kNone) continue;
    notices.push_back({.role = slot.role->name,
                       .index = slot.index,
                       .incarnation = slot.pod->incarnation,
                       .sign = absl::StrCat("node ", slot.pod->node, ": ", notice.sign),
                       .may_stay = notice.kind == NodeNotice::Kind::kMayStay});
  }
  return notices;
}

// Those that were not on such a node a moment ago.
void TellUsers(Pass& pass, const std::vector<MemberNotice>& notices,
               const std::vector<MemberNotice>& before) {
  if (before.size() >= kMostAnnounced) return;
  std::vector<std::string> names;
  std::string sign;
  for (const MemberNotice& notice : notices) {
    if (std::find(before.begin(), before.end(), notice) != before.end()) continue;
    names.push_back(absl::StrCat(notice.role, "-", notice.index));
    if (sign.empty()) sign = notice.sign;
  }
  if (names.empty()) return;
  const size_t more = names.size() - std::min(names.size(), kMostNamed);
  names.resize(names.size() - more);
  std::string note = absl::StrJoin(names, ", ");
  if (more > 0) absl::StrAppend(&note, " and ", more, " more");
  absl::StrAppend(&note, " may soon go (", sign, ")");
  if (pass.spec.training.checkpoint) absl::StrAppend(&note, "; a checkpoint is asked for");
  pass.AddEvent(true, api::event::kNodeLeaving, "Warn", std::move(note));
}

}  // namespace

uint64_t FingerprintOf(const std::vector<MemberNotice>& notices) {
  if (notices.empty()) return 0;
  std::string all;
  for (const MemberNotice& notice : notices) {
    absl::StrAppend(&all, notice.role, "\n", notice.index, "\n", notice.incarnation, "\n",
                    notice.sign, "\n", notice.may_stay ? 1 : 0, "\n");
  }
  return uint64_t{1} << 32 | base::Crc32c(all.data(), all.size());
}

void TellNotices(Pass& pass) {
  const HeadReport* report = pass.Report();
  const ObservedPod* head = pass.HeadPod();
  if (report == nullptr || !report->connected || report->told_to_end || report->takes_no_warning ||
      head == nullptr || head->runtime != ObservedPod::Runtime::kRunning) {
    return;
  }
  std::vector<MemberNotice> notices = NoticesOf(pass);
  if (FingerprintOf(notices) == report->notices_fingerprint) return;
  const std::optional<HeadReport::Warned>& warned = report->warned;
  if (warned && warned->notices == notices) {
    pass.WakeAt(warned->at + kWarnAgain);
    if (pass.now < warned->at + kWarnAgain) return;
  } else {
    TellUsers(pass, notices, warned ? warned->notices : std::vector<MemberNotice>());
  }
  pass.AddStage({WarnHead{std::move(notices)}});
  pass.WakeAt(pass.now + kWarnAgain);
}

}  // namespace hetero::plan
