#pragma once

#include <functional>
#include <stop_token>
#include <thread>

#include "base/clock.h"

namespace hetero::train {

// Calls `cut` once, from its own thread, when `stop` was requested and this object still lives
// after `grace`: the owner then sits in something that does not look at `stop`. The destructor
// joins.
class StopWatcher {
 public:
  StopWatcher(std::stop_token stop, base::Duration grace, base::Clock& clock,
              std::function<void()> cut);

 private:
  std::jthread thread_;
};

}  // namespace hetero::train
