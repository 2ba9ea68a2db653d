// State, continued: what those who start the processes ask for, and say of ends that they have
// seen.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/head/fault_log.h"
#include "runtime/head/state.h"

namespace hetero::head {
namespace {

constexpr int64_t kMaxGeneration = 1'000'000'000;

bool ProvesCompletion(const ProcessEnded& event) {
  return event.ok && event.last_word && event.last_word->ok() && !event.last_word->stopped();
}

// `name` is a member or, of a replica with several ranks, one of them.
bool IsOf(const std::string& replica, const std::string& name) {
  return name == replica || name.rfind(replica + ".", 0) == 0;
}

// `member` may be a replica of several ranks: the first of them that was refused.
std::string WhyRefused(const JobRecord& record, const std::string& member) {
  for (const auto& [name, reason] : record.refusals) {
    if (IsOf(member, name)) return reason;
  }
  return "";
}

}  // namespace

void State::On(const StopRequested& event) {
  if (ending_.begun()) return;
  if (!event.failure.empty()) {
    ending_.Fail("", absl::StrCat(event.failure, ": ", event.reason), now_.steady);
    return;
  }
  outbox_.AddNote(false, absl::StrCat("stop requested: ", event.reason));
  if (!StopScripts(event.reason)) ending_.Stop(event.reason, now_.steady);
}

void State::On(const FailureReported& event) {
  bool last_word_heard = false;
  for (auto& [key, member] : record_.members) {
    if (!IsOf(event.member, member.name)) continue;
    member.process_gone = true;
    last_word_heard |= member.finished.has_value();
    // It has the result, or was let go since another has it.
    if (member.finished && member.finished->ok() && !member.finished->stopped()) return;
  }
  const std::string refusal = WhyRefused(record_, event.member);
  const std::string message = refusal.empty()
                                  ? event.message
                                  : absl::StrCat("refused: ", refusal, " (", event.message, ")");
  if (!ending_.begun()) {
    ending_.Fail(event.member, message, now_.steady);
  } else if (!last_word_heard) {
    ending_.BlameDead(event.member, message);
  }
}

void State::On(const ProcessEnded& event) {
  for (auto& [key, member] : record_.members) {
    if (member.name != event.member) continue;
    if (member.finished) return;
    const int64_t known = member.hello.identity().incarnation();
    if (event.incarnation != 0 && event.incarnation != known) return TakeFaultOfUnmet(event);
    // Of an unknown process only the connection tells whether it is this one.
    if (event.incarnation == 0 && member.connected()) return;
    if (ProvesCompletion(event)) break;
    if (event.ok && !member.trainer()) {  // told to go
      if (event.last_word) TakeWordOfUnmet(event);
      return;
    }
    member.process_gone = true;
    members_.Lose(
        member,
        event.ok ? absl::StrCat("it left without a last word: ", event.message) : event.message,
        now_);
    return;
  }
  if (event.ok) {
    TakeWordOfUnmet(event);
  } else {
    TakeFaultOfUnmet(event);
  }
}

// A head that took the place of another hears only from the launcher of who had left before.
void State::TakeWordOfUnmet(const ProcessEnded& event) {
  const bool believed =
      event.last_word && (ProvesCompletion(event) || !plan_.IsTrainer(event.member));
  MemberRecord* member =
      believed ? members_.PlaceOf(event.member, event.incarnation, now_) : nullptr;
  if (member == nullptr) {
    outbox_.AddNote(true, "exit code 0 without a last word: whether it has finished is not known",
                    event.member);
    return;
  }
  if (event.last_word->has_last()) TakeHeartbeat(*member, event.last_word->last());
  // The head before may have frozen before it could write it down. Only a launcher has last words.
  if (member->trainer() && event.last_word->generation() < kMaxGeneration) {
    record_.past.generation = std::max(record_.past.generation, event.last_word->generation());
  }
  member->finished = event.last_word;
  outbox_.AddNote(false, "had finished", event.member);
}

// It ended under a head before this one, which may have died before it could write that down.
void State::TakeFaultOfUnmet(const ProcessEnded& event) {
  if (event.ok || event.incarnation == 0 || ending_.begun() || !plan_.Has(event.member)) return;
  if (FindFault(record_, event.member, event.incarnation)) return;
  const MemberRecord* newer = nullptr;
  for (const auto& [key, member] : record_.members) {
    if (member.name == event.member) newer = &member;
  }
  if (newer != nullptr && newer->first_incarnation <= event.incarnation) return;
  const size_t fault =
      OpenFault(event.member, event.incarnation,
                absl::StrCat(event.member, " was lost: ", event.message), now_, record_);
  if (newer != nullptr) CloseFault(fault, kReplaced, /*over=*/true, now_, record_);
}

}  // namespace hetero::head
