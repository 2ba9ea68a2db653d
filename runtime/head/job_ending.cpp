#include "runtime/head/job_ending.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/head/text_limits.h"

namespace hetero::head {

bool AllRanksFinished(const JobRecord& record) {
  for (size_t rank = 0; rank < record.ranks.size(); ++rank) {
    const MemberRecord* member = FindRank(record, static_cast<int32_t>(rank));
    if (member == nullptr || !member->finished) return false;
    if (!member->finished->ok() || member->finished->stopped()) return false;
  }
  return !record.ranks.empty();
}

void JobEnding::Fail(const std::string& member, const std::string& message, base::Instant now) {
  if (begun()) return;
  v1::Failure failure;
  failure.set_member(member);
  failure.set_message(message);
  LimitText(kMaxText, *failure.mutable_message());
  record_.first_failure = std::move(failure);
  outbox_.AddNote(true, absl::StrCat("job fails: ", message), member);
  Begin(v1::JobStatus::FAILED,
        absl::StrCat(member.empty() ? "the job" : member, " failed: ", message), now);
}

void JobEnding::FailByLastWord(const std::string& member, const std::string& message,
                               base::Instant now) {
  if (begun()) return;
  failed_by_last_word_ = member;
  Fail(member, message, now);
}

void JobEnding::Stop(const std::string& reason, base::Instant now) {
  if (begun()) return;
  record_.stop_reason = reason;
  Begin(v1::JobStatus::STOPPED, reason, now);
}

void JobEnding::Succeed(base::Instant now) {
  if (begun()) return;
  Begin(v1::JobStatus::SUCCEEDED, "training is complete", now);
}

void JobEnding::Begin(v1::JobStatus::State state, const std::string& reason, base::Instant now) {
  ending_ = Ending{state, now};
  for (const auto& [key, member] : record_.members) SendStop(member, reason);
}

void JobEnding::BlameDead(const std::string& member, const std::string& message) {
  if (!failed_by_last_word_ || *failed_by_last_word_ == member || !record_.first_failure) return;
  v1::Failure& failure = *record_.first_failure;
  failure.set_message(
      absl::StrCat(message, " (then ", failure.member(), ": ", failure.message(), ")"));
  LimitText(kMaxText, *failure.mutable_message());
  failure.set_member(member);
  failed_by_last_word_.reset();
}

void JobEnding::SendStop(const MemberRecord& member, const std::string& reason) {
  if (!member.connected() || member.finished) return;
  v1::HeadMessage message;
  message.mutable_command()->set_kind(v1::Command::STOP);
  message.mutable_command()->set_reason(reason);
  outbox_.Add(Send{*member.stream, std::move(message)});
}

void JobEnding::Conclude(Moment now) {
  if (!ending_ || !Settled(now.steady)) return;
  // A stop that came too late to matter is not a stop.
  if (ending_->state == v1::JobStatus::STOPPED && AllRanksFinished(record_)) {
    ending_->state = v1::JobStatus::SUCCEEDED;
  }
  record_.state = ending_->state;
  record_.ended = now.wall;
  record_.ended_at = now.steady;
  outbox_.AddNote(false, absl::StrCat("job ended: ", v1::JobStatus::State_Name(record_.state)));
  outbox_.Add(EndJob{});
}

bool JobEnding::Settled(base::Instant now) const {
  return std::all_of(record_.members.begin(), record_.members.end(), [&](const auto& entry) {
    const MemberRecord& member = entry.second;
    const base::Duration grace = member.trainer() ? graces_.trainers : graces_.workers;
    return !member.registered() || now - ending_->began >= grace;
  });
}

}  // namespace hetero::head
