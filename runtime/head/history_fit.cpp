#include "runtime/head/history_fit.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "runtime/head/member_totals.h"

namespace hetero::head {
namespace {

// How much of each part stays. From one row to the next there is less.
struct Limits {
  int losses;
  int evaluations;
  int members;  // told one by one
  int ranks;    // of them, with where their time went
  int faults;
  size_t text;  // bytes of a fault, a reason or a cause
  int bad_samples;
  int attempts;
  int script_failures;
  int disruptions;
  int findings;
};
// More of a list is not read (history_codec.cpp).
constexpr Limits kReadable = {10'000, 10'000, 100'000, 100'000, 10'000, size_t{1} << 20,
                              10'000, 10'000, 10'000,  10'000,  10'000};
constexpr Limits kRows[] = {
    {2000, 1000, 10'000, 10'000, 1000, 1024, 100, 1000, 16, 64, 20},
    {400, 200, 500, 100, 200, 400, 100, 200, 16, 64, 20},
    {120, 60, 64, 16, 40, 240, 40, 40, 16, 32, 8},
    {60, 30, 40, 10, 30, 160, 20, 30, 8, 20, 5},
    {30, 16, 24, 6, 20, 120, 10, 20, 8, 12, 4},
    {15, 8, 12, 3, 12, 100, 5, 12, 6, 8, 2},
    {0, 4, 6, 2, 8, 80, 2, 8, 6, 4, 1},
    {0, 1, 0, 0, 4, 60, 0, 4, 6, 1, 0},
    {0, 0, 0, 0, 0, 0, 0, 2, 2, 0, 0},
};

// Never in the middle of a character.
void Shorten(size_t most, std::string& text) {
  if (text.size() <= most) return;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  text.resize(most);
}

// The last `count` stay.
template <typename List>
void KeepNewest(int count, List& list) {
  if (list.size() > count) list.DeleteSubrange(0, list.size() - count);
}

// About `count`, evenly; the newest always.
template <typename List>
void Thin(int count, List& list) {
  if (list.size() <= count) return;
  if (count == 0) return list.Clear();
  const int stride = (list.size() + count - 1) / count;
  int kept = 0;
  for (int i = (list.size() - 1) % stride; i < list.size(); i += stride) {
    list.SwapElements(kept++, i);
  }
  list.DeleteSubrange(kept, list.size() - kept);
}

// The first ones tell what began it, the newest where it stands.
void FitFaults(const Limits& limits, v1::History& history) {
  auto& faults = *history.mutable_faults();
  const int excess = faults.size() - limits.faults;
  if (excess > 0) {
    faults.DeleteSubrange(limits.faults / 4, excess);
    history.set_faults_left_out(history.faults_left_out() + excess);
  }
  for (v1::FaultHistory& fault : faults) Shorten(limits.text, *fault.mutable_what());
}

// The costliest stay.
void FitFindings(const Limits& limits, v1::History& history) {
  auto& findings = *history.mutable_findings();
  if (findings.size() > limits.findings) {
    findings.DeleteSubrange(limits.findings, findings.size() - limits.findings);
  }
  for (v1::Finding& finding : findings) {
    Shorten(limits.text, *finding.mutable_message());
    Shorten(limits.text, *finding.mutable_remedy());
  }
}

void AddToRole(const v1::MemberHistory& member, v1::History& history) {
  const auto found = std::find_if(history.roles().begin(), history.roles().end(),
                                  [&](const auto& role) { return role.role() == member.role(); });
  v1::RoleHistory* role = nullptr;
  if (found == history.roles().end()) {
    role = history.add_roles();
    role->set_role(member.role());
  } else {
    role = history.mutable_roles(static_cast<int>(std::distance(history.roles().begin(), found)));
  }
  const int32_t attempt =
      history.attempts().empty() ? 0 : history.attempts(history.attempts_size() - 1).number();
  const bool ended = member.ended() || member.left() || member.attempt() < attempt;
  AddCounters(member.now(), ended ? *role->mutable_sum() : *role->mutable_living());
  AddCounters(member.earlier(), *role->mutable_sum());
}

// Ranks first, in their order, since their time is the job's; then who was replaced most.
bool TellsMore(const v1::MemberHistory& a, const v1::MemberHistory& b) {
  if (a.has_rank_now() != b.has_rank_now()) return a.has_rank_now();
  if (a.restarts() != b.restarts()) return a.restarts() > b.restarts();
  return false;
}

void FitMembers(const Limits& limits, v1::History& history) {
  auto& members = *history.mutable_members();
  if (members.size() > limits.members || members.size() > limits.ranks) {
    std::stable_sort(members.pointer_begin(), members.pointer_end(),
                     [](const auto* a, const auto* b) { return TellsMore(*a, *b); });
  }
  for (int i = limits.members; i < members.size(); ++i) AddToRole(members[i], history);
  if (members.size() > limits.members) {
    members.DeleteSubrange(limits.members, members.size() - limits.members);
  }
  for (int i = limits.ranks; i < members.size(); ++i) {
    members[i].clear_rank_now();
    members[i].clear_rank_earlier();
  }
}

void FitAttempts(const Limits& limits, v1::History& history) {
  double left_out = history.attempts_left_out_seconds();
  for (int i = 0; i < history.attempts_size() - limits.attempts; ++i) {
    left_out += history.attempts(i).end() - history.attempts(i).begin();
  }
  history.set_attempts_left_out_seconds(left_out);
  KeepNewest(limits.attempts, *history.mutable_attempts());
}

void Cut(const Limits& limits, v1::History& history) {
  Thin(limits.losses, *history.mutable_losses());
  KeepNewest(limits.evaluations, *history.mutable_evaluations());
  FitAttempts(limits, history);
  KeepNewest(limits.script_failures, *history.mutable_script_failures());
  KeepNewest(limits.disruptions, *history.mutable_disruptions());
  for (v1::DisruptionHistory& disruption : *history.mutable_disruptions()) {
    Shorten(limits.text, *disruption.mutable_sign());
  }
  FitFindings(limits, history);
  auto& bad = *history.mutable_bad_samples();
  if (bad.size() > limits.bad_samples) {
    bad.DeleteSubrange(limits.bad_samples, bad.size() - limits.bad_samples);
  }
  for (v1::BadSampleReport& sample : bad) Shorten(limits.text, *sample.mutable_reason());
  for (v1::AttemptHistory& attempt : *history.mutable_attempts()) {
    Shorten(limits.text, *attempt.mutable_cause());
  }
  FitFaults(limits, history);
  FitMembers(limits, history);
}

}  // namespace

void FitHistory(size_t bytes, v1::History& history) {
  Cut(kReadable, history);
  for (const Limits& limits : kRows) {
    if (history.ByteSizeLong() <= bytes) return;
    Cut(limits, history);
  }
  if (history.ByteSizeLong() <= bytes) return;
  history.clear_roles();
  history.clear_checkpoint_uri();
}

}  // namespace hetero::head
