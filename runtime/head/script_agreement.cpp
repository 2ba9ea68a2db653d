#include "runtime/head/script_agreement.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/head/text_limits.h"

namespace hetero::head {
namespace {

constexpr size_t kMostCommits = 8;
constexpr size_t kMostNamed = 4;  // ranks, or positions, in a message
// A rank may be so much further than it has told.
constexpr int64_t kAhead = 2;

job::StreamDigest DigestOf(const v1::ScriptPosition& position) {
  return {position.digest_high(), position.digest_low()};
}

std::string NameRanks(const std::vector<int32_t>& ranks) {
  const size_t named = std::min(ranks.size(), kMostNamed);
  std::string text = absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ",
                                  absl::StrJoin(ranks.begin(), ranks.begin() + named, ", "));
  if (named < ranks.size()) absl::StrAppend(&text, " and ", ranks.size() - named, " more");
  return text;
}

}  // namespace

bool ScriptAgreement::Said(const Ranks& ranks, int32_t rank) {
  const auto at = static_cast<size_t>(rank);
  return at < ranks.said.size() && ranks.said[at];
}

bool ScriptAgreement::Say(int32_t rank, Ranks& ranks) const {
  if (Said(ranks, rank)) return false;
  ranks.said.resize(static_cast<size_t>(options_.ranks));
  ranks.said[static_cast<size_t>(rank)] = true;
  ++ranks.count;
  return true;
}

void ScriptAgreement::Begin(int64_t generation) {
  if (generation == generation_) return;
  generation_ = generation;
  master_.reset();
  positions_.clear();
  agreed_.reset();
  difference_.clear();
  sums_.clear();
  told_step_ = 0;
  preparing_.reset();
  commits_.clear();
  committed_step_ = -1;
  stop_step_.reset();
  gave_up_stop_ = false;
  stop_wished_ = false;
  ended_ = {};
  decisions_.clear();
}

void ScriptAgreement::Take(int32_t rank, const v1::ScriptWord& word, int64_t total_steps,
                           base::Instant now) {
  if (word.generation() != generation_ || rank < 0 || rank >= options_.ranks) return;
  switch (word.word_case()) {
    case v1::ScriptWord::kPosition:
      TakePosition(rank, word.position(), now);
      break;
    case v1::ScriptWord::kDigest:
      TakeDigest(rank, word.digest(), now);
      break;
    case v1::ScriptWord::kWantDigest:
      TakeWish(word.want_digest());
      break;
    case v1::ScriptWord::kCheckpointAnswer:
      TakeAnswer(rank, word.checkpoint_answer(), total_steps, now);
      break;
    case v1::ScriptWord::kEnded:
      TakeEnd(rank);
      break;
    case v1::ScriptWord::kWantCheckpoint:
      TakeStopWish(/*reached=*/0, now);
      break;
    case v1::ScriptWord::kMaster:
      TakeMaster(rank, word.master());
      break;
    case v1::ScriptWord::WORD_NOT_SET:  // of a newer version
      break;
  }
}

v1::ScriptDecision ScriptAgreement::Decision() const {
  v1::ScriptDecision decision;
  decision.set_generation(generation_);
  return decision;
}

v1::ScriptDecision ScriptAgreement::Master() const {
  v1::ScriptDecision decision = Decision();
  *decision.mutable_master() = *master_;
  return decision;
}

void ScriptAgreement::TakeMaster(int32_t rank, const v1::ScriptMaster& master) {
  if (rank != 0 || master_ || master.host().size() > kMaxListedText) return;
  master_ = master;
  Decide(Master());
}

v1::ScriptDecision ScriptAgreement::Agreement() const {
  v1::ScriptDecision decision = Decision();
  *decision.mutable_positions_agree() = *agreed_;
  return decision;
}

void ScriptAgreement::TakePosition(int32_t rank, const v1::ScriptPosition& position,
                                   base::Instant now) {
  if (position.step() < 0) return;
  positions_[rank] = position;
  if (static_cast<int32_t>(positions_.size()) < options_.ranks || !difference_.empty()) return;
  difference_ = DescribeDifference();
  if (agreed_ || !difference_.empty()) return;
  agreed_ = positions_.begin()->second;
  for (const auto& [one, stated] : positions_) {
    if (stated.proven()) agreed_ = stated;
  }
  saved_at_ = now;
  Decide(Agreement());
  for (const auto& [step, sum] : sums_) {
    if (Known(step)) Decide(JobDigest(step));
  }
  if (stop_wished_) Prepare(/*stop=*/true, /*reached=*/0, now);
}

std::string ScriptAgreement::DescribeDifference() const {
  constexpr char kRemedy[] =
      "All ranks have to load the same state before their first batch: from a checkpoint that each "
      "of them can read, or sent to them by rank 0";
  std::map<int64_t, std::vector<int32_t>> by_step;
  std::map<std::string, std::vector<int32_t>> by_digest;
  for (const auto& [rank, position] : positions_) {
    by_step[position.step()].push_back(rank);
    if (position.proven()) by_digest[DigestOf(position).ToHex()].push_back(rank);
  }
  std::vector<std::string> parts;
  if (by_step.size() > 1) {
    for (const auto& [step, ranks] : by_step) {
      if (parts.size() == kMostNamed) break;
      parts.push_back(absl::StrCat("step ", step, ": ", NameRanks(ranks)));
    }
    return absl::StrCat("the scripts do not begin at the same step (", absl::StrJoin(parts, "; "),
                        "). ", kRemedy);
  }
  if (by_digest.size() <= 1) return "";
  for (const auto& [digest, ranks] : by_digest) {
    if (parts.size() == kMostNamed) break;
    parts.push_back(absl::StrCat("digest ", digest, ": ", NameRanks(ranks)));
  }
  return absl::StrCat("the scripts begin at step ", by_step.begin()->first,
                      " with states of different training (", absl::StrJoin(parts, "; "), "). ",
                      kRemedy);
}

// The latest kMostSteps; a sum of an earlier one is told nobody.
ScriptAgreement::Sum& ScriptAgreement::SumAt(int64_t step) {
  Sum& sum = sums_[step];
  if (sums_.size() > kMostSteps) {
    const auto oldest = sums_.begin();
    if (oldest->first != step) sums_.erase(oldest);
  }
  return sum;
}

bool ScriptAgreement::Known(int64_t step) const {
  if (!agreed_) return false;
  if (step == agreed_->step() || !agreed_->proven()) return true;
  const auto sum = sums_.find(step);
  return sum != sums_.end() && AllSaid(sum->second.ranks);
}

v1::ScriptDecision ScriptAgreement::JobDigest(int64_t step) const {
  v1::ScriptDecision decision = Decision();
  v1::ScriptDecision::JobDigest& told = *decision.mutable_job_digest();
  told.set_step(step);
  told.set_proven(agreed_->proven());
  if (!agreed_->proven()) return decision;
  job::StreamDigest digest = DigestOf(*agreed_);
  const auto sum = sums_.find(step);
  if (step != agreed_->step() && sum != sums_.end()) digest += sum->second.digest;
  told.set_high(digest.high());
  told.set_low(digest.low());
  return decision;
}

void ScriptAgreement::TakeDigest(int32_t rank, const v1::ScriptDigest& digest, base::Instant now) {
  if (digest.step() < 0 || (agreed_ && digest.step() <= agreed_->step())) return;
  if (sums_.size() >= kMostSteps && digest.step() < sums_.begin()->first) return;
  told_step_ = std::max(told_step_, digest.step());
  Sum& sum = SumAt(digest.step());
  if (!Say(rank, sum.ranks)) return;
  sum.digest += job::StreamDigest(digest.high(), digest.low());
  if (!AllSaid(sum.ranks)) return;
  if (digest.saves()) saved_at_ = now;
  if (Known(digest.step())) Decide(JobDigest(digest.step()));
}

void ScriptAgreement::TakeWish(int64_t step) {
  if (step < 0) return;
  if (Known(step)) {
    Decide(JobDigest(step));
    return;
  }
  if (sums_.size() >= kMostSteps && step < sums_.begin()->first) return;
  Sum& sum = SumAt(step);
  if (std::exchange(sum.wanted, true)) return;
  v1::ScriptDecision decision = Decision();
  decision.set_want_digest(step);
  Decide(std::move(decision));
}

bool ScriptAgreement::TakeStopWish(int64_t reached, base::Instant now) {
  stop_wished_ = !agreed_ && difference_.empty();
  return !stop_wished_ && Prepare(/*stop=*/true, reached, now);
}

bool ScriptAgreement::Prepare(bool stop, int64_t reached, base::Instant now) {
  if (!agreed_ || !difference_.empty()) return false;
  if (stop_step_) return true;  // what comes after it nobody does
  if (stop) gave_up_stop_ = false;
  if (preparing_) {
    preparing_->stop |= stop;
    return true;
  }
  const int64_t step = std::max({agreed_->step(), reached, told_step_, committed_step_}) + kAhead;
  preparing_ = Checkpoint{.asked = step, .step = step, .stop = stop, .since = now};
  v1::ScriptDecision decision = Decision();
  decision.set_prepare_checkpoint(step);
  Decide(std::move(decision));
  return true;
}

// One that nobody has asked for was asked for by the head before this one.
void ScriptAgreement::TakeAnswer(int32_t rank, int64_t step, int64_t total_steps,
                                 base::Instant now) {
  if (step <= committed_step_) return;
  if (!preparing_) {
    Prepare(/*stop=*/false, step, now);
    return;
  }
  if (step < preparing_->asked) return;  // of an earlier one
  // Ranks have given up as well; Look() does it here.
  if (now - preparing_->since >= kAnswerGrace) return;
  preparing_->step = std::max(preparing_->step, step);
  Say(rank, preparing_->answered);
  if (AllSaid(preparing_->answered)) Commit(total_steps, now);
}

void ScriptAgreement::Commit(int64_t total_steps, base::Instant now) {
  const Checkpoint agreed = *std::exchange(preparing_, std::nullopt);
  // A stop after the last step is none: the scripts come to the end of their stream.
  const bool stop = agreed.stop && (total_steps <= 0 || agreed.step < total_steps);
  v1::ScriptDecision decision = Decision();
  decision.mutable_commit_checkpoint()->set_step(agreed.step);
  decision.mutable_commit_checkpoint()->set_stop(stop);
  committed_step_ = agreed.step;
  saved_at_ = now;
  if (stop) stop_step_ = agreed.step;
  commits_.push_back(decision);
  if (commits_.size() > kMostCommits) commits_.pop_front();
  Decide(std::move(decision));
}

void ScriptAgreement::Look(int64_t reached, base::Instant now) {
  if (preparing_ && now - preparing_->since >= kAnswerGrace) {
    gave_up_stop_ = preparing_->stop;
    preparing_.reset();
    saved_at_ = now;
  }
  if (!options_.checkpoint_interval || preparing_ || stop_step_ || ended_.count > 0) return;
  if (agreed_ && now - saved_at_ >= *options_.checkpoint_interval) Prepare(false, reached, now);
}

void ScriptAgreement::TakeEnd(int32_t rank) {
  if (!Say(rank, ended_) || !AllSaid(ended_) || stop_step_) return;
  v1::ScriptDecision decision = Decision();
  decision.set_all_ended(true);
  Decide(std::move(decision));
}

std::vector<v1::ScriptDecision> ScriptAgreement::TakeDecisions() {
  return std::exchange(decisions_, {});
}

std::vector<v1::ScriptDecision> ScriptAgreement::Decided() const {
  std::vector<v1::ScriptDecision> decided;
  if (master_) decided.push_back(Master());
  if (!agreed_ || !difference_.empty()) return decided;
  decided.push_back(Agreement());
  for (const auto& [step, sum] : sums_) {
    if (Known(step)) {
      decided.push_back(JobDigest(step));
    } else if (sum.wanted) {
      decided.push_back(Decision());
      decided.back().set_want_digest(step);
    }
  }
  decided.insert(decided.end(), commits_.begin(), commits_.end());
  if (preparing_) {
    decided.push_back(Decision());
    decided.back().set_prepare_checkpoint(preparing_->step);
  }
  if (AllSaid(ended_) && !stop_step_) {
    decided.push_back(Decision());
    decided.back().set_all_ended(true);
  }
  return decided;
}

}  // namespace hetero::head
