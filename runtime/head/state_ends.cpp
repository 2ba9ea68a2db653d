// What the head is told about ends of processes by whoever creates them.
#include "absl/strings/str_cat.h"
#include "runtime/head/state.h"

namespace hetero::head {
namespace {

bool ProvesCompletion(const ProcessEnded& event) {
  return event.ok && event.last_word && event.last_word->ok() && !event.last_word->stopped();
}

}  // namespace

void State::On(const FailureReported& event) {
  bool last_word_heard = false;
  for (auto& [key, member] : record_.members) {
    if (member.name != event.member) continue;
    member.process_gone = true;
    last_word_heard = member.finished.has_value();
  }
  if (!ending_) {
    Fail(event.member, event.message);
    return;
  }
  // A process that died without a word is the cause; the peer that complained first only noticed.
  if (failed_by_last_word_ && *failed_by_last_word_ != event.member && !last_word_heard &&
      record_.first_failure) {
    record_.first_failure->set_message(absl::StrCat(event.message, " (then ",
                                                    record_.first_failure->member(), ": ",
                                                    record_.first_failure->message(), ")"));
    record_.first_failure->set_member(event.member);
    failed_by_last_word_.reset();
  }
}

void State::On(const ProcessEnded& event) {
  for (auto& [key, member] : record_.members) {
    if (member.name != event.member) continue;
    if (member.finished) return;
    const int64_t known = member.hello.identity().incarnation();
    if (event.incarnation != 0 && event.incarnation != known) return;
    // Of an unknown process only the connection tells whether it is this one.
    if (event.incarnation == 0 && member.connected()) return;
    if (ProvesCompletion(event)) break;
    if (event.ok && !member.trainer()) return;  // told to go
    member.process_gone = true;
    Lose(member,
         event.ok ? absl::StrCat("it left without a last word: ", event.message) : event.message);
    return;
  }
  if (!event.ok) return;
  // A head that took the place of another hears only from the launcher of who had left before.
  if (!ProvesCompletion(event)) {
    AddNote(true, "exit code 0 without a last word: whether it has finished is not known",
            event.member);
    return;
  }
  MemberRecord* rank = RankNamed(event.member);
  if (rank == nullptr) return;
  rank->name = event.member;
  if (event.last_word->has_last()) TakeHeartbeat(*rank, event.last_word->last());
  rank->finished = event.last_word;
  AddNote(false, "had finished", event.member);
}

MemberRecord* State::RankNamed(const std::string& name) {
  for (size_t rank = 0; rank < record_.ranks.size(); ++rank) {
    const MemberKey& key = record_.ranks[rank];
    for (const RolePlan::Role& role : plan_.roles()) {
      if (role.name != key.role || MemberName(role, key.index, key.local_rank) != name) continue;
      MemberRecord& member = record_.members[key];
      member.rank = static_cast<int32_t>(rank);
      return &member;
    }
  }
  return nullptr;
}

}  // namespace hetero::head
