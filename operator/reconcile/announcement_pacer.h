#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace hetero::reconcile {

// How often a listener is told that something has changed: at once when it is urgent, else at most
// once in a period. More than a few urgent changes in a row are none: each costs a pass and perhaps
// a write. Not thread-safe.
class AnnouncementPacer {
 public:
  static constexpr base::Duration kPeriod = std::chrono::milliseconds(200);
  static constexpr int kUrgentInARow = 5;

  // How long until what has changed now is to be announced; zero: it is announced now, none: an
  // announcement that was put off before will tell it too.
  std::optional<base::Duration> Changed(bool urgent, base::Instant now) {
    if ((urgent && MayBeUrgent(now)) || !last_ || now - *last_ >= kPeriod) {
      last_ = now;
      return base::Duration::zero();
    }
    if (std::exchange(put_off_, true)) return std::nullopt;
    return *last_ + kPeriod - now;
  }
  // What was put off is announced now.
  void AnnouncedLate(base::Instant now) {
    put_off_ = false;
    last_ = now;
  }

 private:
  // One in a period in the long run.
  bool MayBeUrgent(base::Instant now) {
    const base::Instant next =
        std::max<base::Instant>(urgent_, now - kUrgentInARow * kPeriod) + kPeriod;
    if (next > now) return false;
    urgent_ = next;
    return true;
  }

  std::optional<base::Instant> last_;
  base::Instant urgent_{};
  bool put_off_ = false;
};

}  // namespace hetero::reconcile
