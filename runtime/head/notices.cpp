#include "runtime/head/notices.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/head/text_limits.h"

namespace hetero::head {
namespace {

// Of the newest checkpoint that any rank has told of; 0: none.
int64_t SavedStep(const JobRecord& record) {
  int64_t saved = 0;
  for (const auto& [key, member] : record.members) {
    if (member.trainer()) saved = std::max(saved, member.progress.checkpoint_step());
  }
  return saved;
}

int64_t ToldStep(const JobRecord& record) {
  int64_t step = 0;
  for (const auto& [key, member] : record.members) {
    if (member.trainer()) step = std::max(step, member.progress.step());
  }
  return step;
}

std::string NameOf(const v1::Notice& notice) {
  return absl::StrCat(notice.role(), "-", notice.index());
}

bool SameNotice(const v1::Notice& a, const v1::Notice& b) {
  return a.incarnation() == b.incarnation() && a.sign() == b.sign();
}

}  // namespace

bool Notices::Concerns(const v1::Notice& notice) const {
  return std::any_of(plan_.roles().begin(), plan_.roles().end(), [&](const RolePlan::Role& role) {
    return role.name == notice.role() && notice.index() >= 0 &&
           notice.index() < RolePlan::MostReplicas(role);
  });
}

void Notices::Take(const v1::Notices& notices, Moment now) {
  const std::map<MemberKey, v1::Notice> before = std::exchange(record_.notices, {});
  record_.notices_fingerprint = notices.fingerprint();
  for (const v1::Notice& told : notices.notices()) {
    if (!Concerns(told)) continue;
    const MemberKey key{told.role(), told.index(), 0};
    v1::Notice& notice = record_.notices[key];
    notice = told;
    LimitText(kMaxListedText, *notice.mutable_sign());
    const auto earlier = before.find(key);
    if (earlier != before.end() && SameNotice(earlier->second, notice)) continue;
    Disruption* const known = was_told_ ? nullptr : Known(notice);
    if (known == nullptr) {
      Begin(notice, now);
    } else if (!known->checkpoint_seconds) {
      known->told = wanted_ = true;
    }
  }
  was_told_ = true;
}

Disruption* Notices::Known(const v1::Notice& notice) {
  const std::string member = NameOf(notice);
  const auto known = std::find_if(
      record_.disruptions.rbegin(), record_.disruptions.rend(), [&](const Disruption& disruption) {
        return disruption.member == member && disruption.incarnation == notice.incarnation() &&
               notice.sign().starts_with(disruption.sign);  // a history may have cut it
      });
  return known == record_.disruptions.rend() ? nullptr : &*known;
}

void Notices::Begin(const v1::Notice& notice, Moment now) {
  const std::string member = NameOf(notice);
  outbox_.AddNote(true, absl::StrCat("is about to go (", notice.sign(), ")"), member);
  record_.disruptions.push_back({.time = now.wall,
                                 .since = now.steady,
                                 .member = member,
                                 .incarnation = notice.incarnation(),
                                 .sign = notice.sign(),
                                 .told = true,
                                 .step = {},
                                 .checkpoint_seconds = {}});
  if (record_.disruptions.size() > kMostDisruptions) {
    record_.disruptions.erase(record_.disruptions.begin());
  }
  wanted_ = true;
  asked_.reset();
}

bool Notices::AwaitsCheckpoint() const {
  return wanted_ && record_.job.spec.training.checkpoint && !record_.input_only &&
         record_.generation > 0;
}

void Notices::Settle(Moment now) {
  if (!AwaitsCheckpoint()) return;
  for (Disruption& disruption : record_.disruptions) {
    if (!disruption.told || disruption.step) continue;
    disruption.step = ToldStep(record_);
    disruption.saved = SavedStep(record_);
  }
  if (!record_.runs_scripts()) Saved(SavedStep(record_), now);
}

void Notices::Ask(ScriptAgreement& agreement, Moment now) {
  if (!AwaitsCheckpoint()) return;
  if (asked_ && asked_->generation != record_.generation) asked_.reset();
  if (record_.runs_scripts()) {
    AskScripts(agreement, now);
  } else {
    AskRankZero(now);
  }
}

void Notices::AskRankZero(Moment now) {
  const MemberRecord* first = FindRank(record_, 0);
  if (first == nullptr || !first->connected() || !first->registered()) return;
  const bool same = asked_ && asked_->stream == first->stream;
  const bool failed = !first->progress.checkpoint_problem().empty();
  if (same && !(failed && now.steady - asked_->at >= kAskAgain)) return;
  asked_ = {.stream = first->stream, .generation = record_.generation, .at = now.steady};
  v1::HeadMessage message;
  message.mutable_command()->set_kind(v1::Command::CHECKPOINT);
  message.mutable_command()->set_reason("a machine of the job is about to go");
  outbox_.Add(Send{*first->stream, std::move(message)});
}

// A script has saved when it asks for the batch after that step.
void Notices::AskScripts(ScriptAgreement& agreement, Moment now) {
  if (agreement.generation() != record_.generation) return;
  const int64_t committed = agreement.committed_step();
  const bool given_up = asked_ && committed <= asked_->committed &&
                        now.steady - asked_->at >= ScriptAgreement::kAnswerGrace + kAskAgain;
  if (!asked_ || given_up) {
    if (!agreement.Prepare(/*stop=*/false, ToldStep(record_), now.steady)) return;
    asked_ = {
        .stream = {}, .generation = record_.generation, .at = now.steady, .committed = committed};
    return;
  }
  const MemberRecord* first = FindRank(record_, 0);
  if (committed <= asked_->committed || first == nullptr || first->progress.step() <= committed) {
    return;
  }
  Saved(committed, now);
}

void Notices::Saved(int64_t step, Moment now) {
  bool all = true;
  for (Disruption& disruption : record_.disruptions) {
    if (!disruption.told || disruption.checkpoint_seconds) continue;
    if (step <= disruption.saved || step < disruption.step.value_or(0)) {
      all = false;
      continue;
    }
    disruption.checkpoint_seconds = base::ToSeconds(now.steady - disruption.since);
    disruption.checkpoint_step = step;
    outbox_.AddNote(false,
                    absl::StrCat("the training is saved after step ", step, ", ",
                                 *disruption.checkpoint_seconds, " s after the notice"),
                    disruption.member);
  }
  if (all) wanted_ = false;
}

}  // namespace hetero::head
