#include "runtime/feed/producer_state.h"

#include <algorithm>
#include <cmath>

namespace hetero::feed {
namespace {

constexpr double kHorizonSeconds = 1.0;  // of work given to one producer in advance
constexpr double kForgetFactor = 10;  // idle for this many of its intervals: its rate is old news
constexpr double kSilenceFactor = 3;
constexpr double kSilenceKept = 0.99;
constexpr double kMostLeft = 64;     // tickets
constexpr double kLeftKept = 0.998;  // of what is left with it, per ticket that it was left with
constexpr double kLongestWay = 2;  // seconds; who takes longer to answer a try is not just far away

}  // namespace

bool ProducerState::HasBegun(int64_t ticket) const {
  const auto it = outstanding_.find(ticket);
  return it != outstanding_.end() && it->second.started.has_value();
}

bool ProducerState::MayHaveBegun(int64_t ticket) const {
  const auto it = outstanding_.find(ticket);
  if (it == outstanding_.end()) return false;
  if (it->second.started.has_value()) return true;
  return std::all_of(outstanding_.begin(), outstanding_.end(), [&](const auto& other) {
    return !other.second.started.has_value() && other.second.sequence >= it->second.sequence;
  });
}

std::optional<int64_t> ProducerState::LastNotBegun() const {
  for (auto it = outstanding_.rbegin(); it != outstanding_.rend(); ++it) {
    if (!it->second.started.has_value()) return it->first;
  }
  return std::nullopt;
}

void ProducerState::SetUp(base::Instant now) {
  up_ = true;
  silent_since_ = now;
}

void ProducerState::SetDown() {
  up_ = false;
  frozen_ = false;
  on_probation_ = false;
  outstanding_.clear();
  usual_silence_ = 0;
  left_with_owner_ = kLeftWithOwner;
  // Whoever answers under this address next is measured anew.
  meter_ = {};
}

void ProducerState::Issue(int64_t ticket, base::Instant now) {
  if (outstanding_.empty()) silent_since_ = now;
  Outstanding issued;
  issued.sequence = next_sequence_++;
  issued.issued = now;
  outstanding_[ticket] = issued;
}

void ProducerState::Withdraw(int64_t ticket) {
  const auto it = outstanding_.find(ticket);
  if (it == outstanding_.end()) return;
  if (it->second.started.has_value()) meter_.Abandoned(1);
  outstanding_.erase(it);
}

void ProducerState::Started(int64_t ticket, base::Instant now) {
  NoteSignOfLife(now);
  const auto it = outstanding_.find(ticket);
  if (it == outstanding_.end() || it->second.started.has_value()) return;
  it->second.started = now;
  latest_begun_ = std::max(latest_begun_, it->second.sequence);
  // The way there and back is silence too. Whoever was found frozen because of it alone would be
  // found frozen with every try.
  if (on_probation_ && it->second.sequence >= thaw_sequence_) {
    const double way = std::min(base::ToSeconds(now - it->second.issued), kLongestWay);
    usual_silence_ = std::max(usual_silence_, way);
  }
  meter_.Started(now);
}

std::optional<base::Duration> ProducerState::Arrived(int64_t ticket, base::Duration work,
                                                     base::Instant now) {
  const auto it = outstanding_.find(ticket);
  const bool known = it != outstanding_.end();
  const Outstanding done = known ? it->second : Outstanding{};
  const bool begun = known && done.started.has_value();
  // A ticket of its probation is measured even if it had to be given up: that is its speed now.
  const bool telling = begun && done.sequence >= thaw_sequence_ && (!frozen_ || on_probation_);
  NoteSignOfLife(now);
  failures_ = 0;
  quarantined_until_.reset();
  next_quarantine_ = kFirstQuarantine;
  on_trial_ = false;
  if (!known) {
    // It had begun the ticket before word of that, or the word that it is not wanted, got through.
    left_with_owner_ = std::min(2 * left_with_owner_, kMostLeft);
    return std::nullopt;
  }
  left_with_owner_ = std::max<double>(left_with_owner_ * kLeftKept, kLeftWithOwner);
  outstanding_.erase(it);
  ++arrived_;
  latest_begun_ = std::max(latest_begun_, done.sequence);
  if (begun && !telling) meter_.Abandoned(1);
  if (!telling) return std::nullopt;
  meter_.Finished(now, work);
  on_probation_ = false;
  return now - *done.started;
}

bool ProducerState::Failed(int64_t ticket, base::Instant now) {
  NoteSignOfLife(now);
  Withdraw(ticket);
  ++failures_;
  if (quarantined() || (failures_ < kMostFailures && !on_trial_)) return false;
  quarantined_until_ = now + next_quarantine_;
  next_quarantine_ = std::min(2 * next_quarantine_, kLongestQuarantine);
  on_trial_ = false;
  return true;
}

void ProducerState::JudgeQuarantine(base::Instant now) {
  if (!quarantined() || now < *quarantined_until_) return;
  quarantined_until_.reset();
  on_trial_ = true;
}

void ProducerState::NoteSignOfLife(base::Instant now) {
  if (frozen_) {
    frozen_ = false;
    if (!on_probation_) {
      // What was measured before or during the silence says nothing about the producer now: it gets
      // one ticket until it has been measured again.
      on_probation_ = true;
      thaw_sequence_ = next_sequence_;
      meter_.Forget(now);
    }
  } else if (!outstanding_.empty()) {
    usual_silence_ = std::max(usual_silence_ * kSilenceKept, base::ToSeconds(now - silent_since_));
  }
  silent_since_ = now;
}

std::optional<base::Instant> ProducerState::DueSince(Outstanding* waiting,
                                                     base::Instant now) const {
  if (waiting->sequence < latest_begun_ && !waiting->passed_over.has_value()) {
    waiting->passed_over = now;
  }
  return waiting->started.has_value() ? waiting->started : waiting->passed_over;
}

bool ProducerState::JudgeOverdue(int64_t ticket, base::Duration delay, base::Instant now) {
  Outstanding& waiting = outstanding_.at(ticket);
  const std::optional<base::Instant> since = DueSince(&waiting, now);
  if (since.has_value() && now - *since > delay) waiting.overdue = true;
  return waiting.overdue;
}

bool ProducerState::JudgeFrozen(base::Duration delay, base::Instant now) {
  const double own = kSilenceFactor * std::max(interval().value_or(0), usual_silence_);
  if (now - silent_since_ > std::max(delay, base::FromSeconds(own))) frozen_ = true;
  return frozen_;
}

base::Duration ProducerState::LongestDebt(base::Instant now) {
  if (outstanding_.empty()) return base::Duration(0);
  const std::optional<base::Instant> since = DueSince(&outstanding_.begin()->second, now);
  return now - std::min(since.value_or(now), silent_since_);
}

double ProducerState::ExpectedSeconds(base::Instant now) const {
  const double silence = base::ToSeconds(now - silent_since_);
  double each = interval().value_or(0);
  // Without a new try, one bad measurement would shut a producer out for good.
  if (outstanding_.empty() && silence > kForgetFactor * each) return 0;
  if (!outstanding_.empty() && interval().has_value()) each = std::max(each, silence);
  return static_cast<double>(count() + 1) * each;
}

int64_t ProducerState::Credit(int64_t capacity, double all_rates) const {
  if (on_trial_) return 1;
  if (!interval().has_value()) return on_probation_ ? 1 : kFirstCredit;
  const double rate = 1 / *interval();
  const double share = static_cast<double>(capacity) * rate / std::max(all_rates, rate);
  const double credit = std::min(share, 1 + kHorizonSeconds * rate);
  return std::max(kFirstCredit, static_cast<int64_t>(std::ceil(credit)));
}

}  // namespace hetero::feed
