#include "base/mutex.h"

#include <utility>

namespace hetero::base {

// The standard library's waits with a stop token want a condition: it holds from the second time it
// is asked, which is after the first thing that may have been a change.
void CondVar::Wait(Mutex& mutex, const std::stop_token& stop) {
  bool asked = false;
  changed_.wait(mutex.mutex_, stop, [&] { return std::exchange(asked, true); });
}

bool CondVar::WaitUntil(Mutex& mutex, Instant deadline, const std::stop_token& stop) {
  bool asked = false;
  changed_.wait_until(mutex.mutex_, stop, deadline, [&] { return std::exchange(asked, true); });
  return Instant::clock::now() < deadline;
}

}  // namespace hetero::base
