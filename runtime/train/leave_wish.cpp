#include "runtime/train/leave_wish.h"

#include <algorithm>
#include <utility>

namespace hetero::train {

LeaveWish::LeaveWish(std::stop_token asked, base::Clock& clock)
    : asked_(std::move(asked)), clock_(clock), on_asked_(asked_, [this] {
        const base::Duration now = clock_.Now().time_since_epoch();
        since_ = std::max<int64_t>(now.count(), 1);
      }) {}

bool LeaveWish::insists() const {
  const int64_t since = since_;
  if (since == 0) return false;
  return clock_.Now().time_since_epoch() - base::Duration(since) >= kTogether;
}

}  // namespace hetero::train
