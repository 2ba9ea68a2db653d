#pragma once

#include <optional>
#include <utility>

#include "base/clock.h"

namespace hetero::reconcile {

// How often a listener is told that something has changed: at once when it is urgent, else at most
// once in a period. Not thread-safe.
class AnnouncementPacer {
 public:
  static constexpr base::Duration kPeriod = std::chrono::milliseconds(200);

  // How long until what has changed now is to be announced; zero: it is announced now, none: an
  // announcement that was put off before will tell it too.
  std::optional<base::Duration> Changed(bool urgent, base::Instant now) {
    if (urgent || !last_ || now - *last_ >= kPeriod) {
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
  std::optional<base::Instant> last_;
  bool put_off_ = false;
};

}  // namespace hetero::reconcile
