#include "runtime/feed/local_share.h"

#include <algorithm>

namespace hetero::feed {

bool LocalShareRule::Shares(const View& view, base::Instant now) {
  if (!looked_at_) {
    looked_at_ = now;
    looked_ = view;
  }
  if (view.late && shares_) {
    shares_ = false;
    // Long after the last rest the host is another one.
    if (now > rests_until_ + 4 * next_rest_) next_rest_ = kFirstRest;
    rests_until_ = now + next_rest_;
    next_rest_ = std::min(2 * next_rest_, kLongestRest);
  }
  if (now - *looked_at_ >= kLook) {
    Look(view, now - *looked_at_, now);
    looked_at_ = now;
    looked_ = view;
  }
  return shares_;
}

void LocalShareRule::Look(const View& view, base::Duration elapsed, base::Instant now) {
  const double seconds = base::ToSeconds(elapsed);
  const double waits = (view.waited - looked_.waited) / seconds;
  if (!shares_) {
    enough_ = 0;
    shares_ = waits >= kWaits && now >= rests_until_;
    return;
  }
  const double taken = static_cast<double>(view.consumed - looked_.consumed) / seconds;
  enough_ = view.worker_rate >= kEnough * taken && waits < kWaits ? enough_ + 1 : 0;
  if (enough_ >= kEnoughLooks) shares_ = false;
}

}  // namespace hetero::feed
