#pragma once

#include <functional>
#include <stop_token>
#include <thread>

#include "base/clock.h"

namespace hetero::train {

struct LastResort {
  base::Duration patience{};
  std::function<void()> give_up;
};

// Calls `cut` from its own thread when `stop` was requested and this object still lives after
// `grace`: the owner then sits in something that does not look at `stop`. Calls it again every five
// seconds for as long as the owner stays; and `give_up` once, if there is one, when the owner has
// stayed for `patience` since the first. The destructor joins.
class StopWatcher {
 public:
  StopWatcher(std::stop_token stop, base::Duration grace, base::Clock& clock,
              std::function<void()> cut, LastResort last_resort = {});

 private:
  std::jthread thread_;
};

}  // namespace hetero::train
