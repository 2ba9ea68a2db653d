#include "operator/reconcile/followed_head.h"

#include <utility>

namespace hetero::reconcile {

void FollowedHead::Begin(uint64_t serial, const plan::HeadTarget& target) {
  const base::MutexLock lock(mutex_);
  serial_ = serial;
  incarnation_ = target.incarnation;
  builder_.KnowReplicas(target.replicas);
  builder_.Disconnected();
  builder_.Follow(clock_.WallNow());
  pacer_ = {};  // what was put off for an earlier stream is not announced any more
}

void FollowedHead::Resize(const plan::HeadTarget& target) {
  const base::MutexLock lock(mutex_);
  builder_.KnowReplicas(target.replicas);
}

FollowedHead::News FollowedHead::Heard(uint64_t serial, const v1::JobStatus& status) {
  const base::MutexLock lock(mutex_);
  if (serial != serial_) return {};
  // The address may still lead to a head that was replaced and lives on.
  if (status.head_incarnation() != 0 && status.head_incarnation() < incarnation_) return {};
  if (status.unchanged()) {
    builder_.HeardUnchanged(clock_.WallNow());
    return {};
  }
  const base::Instant now = clock_.Now();
  const bool urgent = builder_.Heard(status, now, clock_.WallNow());
  return {.announce_after = pacer_.Changed(urgent, now),
          .check_lost_after = builder_.UntilLost(now)};
}

void FollowedHead::ToldToEnd(uint64_t serial) {
  const base::MutexLock lock(mutex_);
  if (serial == serial_) builder_.ToldToEnd();
}

void FollowedHead::Warned(uint64_t serial, std::vector<plan::MemberNotice> notices) {
  const base::MutexLock lock(mutex_);
  if (serial == serial_) builder_.Warned(std::move(notices), clock_.WallNow());
}

void FollowedHead::TakesNoWarning(uint64_t serial) {
  const base::MutexLock lock(mutex_);
  if (serial == serial_) builder_.TakesNoWarning();
}

bool FollowedHead::CheckLost(uint64_t serial) {
  const base::MutexLock lock(mutex_);
  if (serial != serial_ || !builder_.UpdateLost(clock_.Now())) return false;
  pacer_.Changed(/*urgent=*/true, clock_.Now());
  return true;
}

bool FollowedHead::AnnounceLate(uint64_t serial) {
  const base::MutexLock lock(mutex_);
  if (serial != serial_) return false;
  pacer_.AnnouncedLate(clock_.Now());
  return true;
}

std::optional<FollowedHead::End> FollowedHead::Ended(uint64_t serial) {
  const base::MutexLock lock(mutex_);
  if (serial != serial_) return std::nullopt;
  const End end = {.was_connected = builder_.report().connected,
                   .has_verdict = builder_.report().verdict.has_value()};
  builder_.Disconnected();
  return end;
}

plan::HeadReport FollowedHead::report() const {
  const base::MutexLock lock(mutex_);
  return builder_.report();
}

bool FollowedHead::connected() const {
  const base::MutexLock lock(mutex_);
  return builder_.report().connected;
}

}  // namespace hetero::reconcile
