// State, continued: jobs whose ranks run scripts.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/head/state.h"

namespace hetero::head {
namespace {

int64_t ReachedStep(const JobRecord& record) {
  int64_t reached = 0;
  for (size_t rank = 0; rank < record.ranks.size(); ++rank) {
    const MemberRecord* member = FindRank(record, static_cast<int32_t>(rank));
    if (member != nullptr) reached = std::max(reached, member->progress.step());
  }
  return reached;
}

int64_t TotalSteps(const JobRecord& record) {
  const MemberRecord* first = FindRank(record, 0);
  return first == nullptr ? 0 : first->progress.total_steps();
}

bool AllRanksTakePart(const JobRecord& record) {
  for (size_t rank = 0; rank < record.ranks.size(); ++rank) {
    const MemberRecord* member = FindRank(record, static_cast<int32_t>(rank));
    if (member == nullptr || !member->takes_part()) return false;
  }
  return true;
}

v1::HeadMessage MessageOf(v1::ScriptDecision decision) {
  v1::HeadMessage message;
  *message.mutable_script_decision() = std::move(decision);
  return message;
}

}  // namespace

void State::On(const ScriptWordReceived& event) {
  MemberRecord* member = members_.Find(event.stream);
  if (member == nullptr || !member->trainer() || !record_.runs_scripts()) return;
  members_.Hear(*member, now_);
  const int64_t generation = event.word.generation();
  if (record_.generation == 0) {
    // This head takes another's place: it has their words before it knows whether all ranks work in
    // one generation.
    if (generation != member->hello.generation() || generation < agreement_.generation()) return;
  } else if (generation != record_.generation || !generations_.Plays(*member)) {
    return;
  }
  agreement_.Begin(generation);  // its first word may come right after it was opened
  if (event.word.want_checkpoint()) {
    if (agreement_.TakeStopWish(ReachedStep(record_), now_.steady)) {
      outbox_.AddNote(false, "is to leave: all scripts save first", member->name);
    }
  } else {
    agreement_.Take(member->rank, event.word, TotalSteps(record_), now_.steady);
  }
}

void State::TakeScriptFailure(const MemberRecord& member, const v1::ScriptFailure& failure) {
  if (!member.trainer() || !record_.runs_scripts()) return;
  if (record_.generation > 0 && !generations_.Plays(member)) return;
  const std::optional<ScriptFailures::End> end =
      script_failures_.Take(member.name, failure, now_.steady);
  if (end && !stopping_) ending_.Fail(end->member, end->message, now_.steady);
}

void State::AdvanceScripts() {
  if (stop_wanted_ && !SaveScriptsFirst(stop_wanted_->reason) &&
      now_.steady >= stop_wanted_->deadline) {
    ending_.Stop(stop_wanted_->reason, now_.steady);
    return;
  }
  if (stopping_) stop_wanted_.reset();
  if (!record_.runs_scripts() || record_.generation == 0) return;
  agreement_.Begin(record_.generation);
  agreement_.Look(ReachedStep(record_), now_.steady);
  if (!agreement_.difference().empty()) {
    ending_.Fail("", agreement_.difference(), now_.steady);
    return;
  }
  if (agreement_.position() && agreed_generation_ != record_.generation) {
    agreed_generation_ = record_.generation;
    const int64_t step = agreement_.position()->step();
    outbox_.AddNote(false, absl::StrCat("all scripts begin at step ", step));
    generations_.BeginAt(step);
    script_failures_.Recover(now_);
  }
  if (!stopping_) {
    const std::optional<ScriptFailures::End> end = script_failures_.Judge(/*closing=*/false, now_);
    if (end) ending_.Fail(end->member, end->message, now_.steady);
  }
  TellDecisions();
  AdvanceStop();
}

bool State::ScriptsEndTheJob() {
  if (!record_.runs_scripts()) return false;
  if (stopping_) {
    ending_.Stop(stopping_->reason, now_.steady);
    return true;
  }
  const std::optional<ScriptFailures::End> end = script_failures_.Judge(/*closing=*/true, now_);
  if (end) ending_.Fail(end->member, end->message, now_.steady);
  return ending_.begun();
}

bool State::StopScripts(const std::string& reason) {
  if (SaveScriptsFirst(reason) || stop_wanted_) return true;
  if (!HearsOfScriptsSoon()) return false;
  stop_wanted_ = Stopping{reason, now_.steady + ScriptAgreement::kAnswerGrace};
  return true;
}

bool State::HearsOfScriptsSoon() const {
  if (!record_.runs_scripts() || !record_.job.spec.training.checkpoint) return false;
  if (record_.generation > 0 && agreed_generation_ == record_.generation) return false;
  return std::any_of(record_.members.begin(), record_.members.end(), [this](const auto& entry) {
    const MemberRecord& member = entry.second;
    const int64_t generation = member.hello.generation();
    return member.trainer() && generation > 0 &&
           (record_.generation == 0 || record_.generation == generation);
  });
}

bool State::SaveScriptsFirst(const std::string& reason) {
  if (stopping_) return true;
  if (!record_.runs_scripts() || !record_.job.spec.training.checkpoint) return false;
  if (record_.generation == 0 || agreement_.generation() != record_.generation) return false;
  if (!AllRanksTakePart(record_)) return false;
  if (!agreement_.Prepare(/*stop=*/true, ReachedStep(record_), now_.steady)) return false;
  const auto save = std::chrono::seconds(record_.job.spec.run_policy.stop_grace_seconds);
  stopping_ = Stopping{reason, now_.steady + ScriptAgreement::kAnswerGrace + save};
  outbox_.AddNote(false, "all scripts save before the job stops");
  return true;
}

// Once all have saved and ended, or as soon as one of them will not.
void State::AdvanceStop() {
  if (!stopping_ || ending_.begun()) return;
  const auto has_ended = [this](const auto& entry) {
    const MemberRecord& member = entry.second;
    return !member.trainer() || member.finished || agreement_.HasEnded(member.rank);
  };
  const bool all_ended = std::all_of(record_.members.begin(), record_.members.end(), has_ended);
  const bool broken =
      std::any_of(record_.members.begin(), record_.members.end(), [this](const auto& entry) {
        const MemberRecord& member = entry.second;
        if (!member.trainer() || member.finished) return false;
        return member.lost || member.process_gone || member.broken_generation == record_.generation;
      });
  const bool saved = agreement_.stop_step() && all_ended;
  if (saved || broken || agreement_.gave_up_stop() || now_.steady >= stopping_->deadline) {
    ending_.Stop(stopping_->reason, now_.steady);
  }
}

void State::TellDecisions() {
  for (const v1::ScriptDecision& decision : agreement_.TakeDecisions()) {
    const v1::HeadMessage message = MessageOf(decision);
    for (const auto& [key, member] : record_.members) {
      if (!member.trainer() || !member.connected() || !generations_.Plays(member)) continue;
      outbox_.Add(Send{*member.stream, message});
    }
  }
}

void State::RepeatDecisions(const MemberRecord& member) {
  if (!member.trainer() || !record_.runs_scripts()) return;
  if (agreement_.generation() != record_.generation) return;
  for (v1::ScriptDecision& decision : agreement_.Decided()) {
    outbox_.Add(Send{*member.stream, MessageOf(std::move(decision))});
  }
}

// One of them has left with the result, and may have heard that from a head before this one.
void State::TellAllEnded(const MemberRecord& member) {
  if (!record_.runs_scripts()) return;
  v1::ScriptDecision decision;
  decision.set_generation(record_.generation > 0 ? record_.generation : member.hello.generation());
  decision.set_all_ended(true);
  outbox_.Add(Send{*member.stream, MessageOf(std::move(decision))});
}

}  // namespace hetero::head
