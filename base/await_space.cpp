#include "base/await_space.h"

#include <utility>

namespace hetero::base {

constexpr Duration kPause = std::chrono::seconds(1);

absl::Status WriteWhenThereIsSpace(const std::function<absl::Status()>& write, Duration patience,
                                   Clock& clock,
                                   const std::function<void(const absl::Status&)>& on_wait,
                                   std::stop_token stop) {
  const Instant deadline = clock.Now() + patience;
  bool told = false;
  while (true) {
    absl::Status status = write();
    if (!absl::IsResourceExhausted(status) || clock.Now() >= deadline) return status;
    if (!std::exchange(told, true)) on_wait(status);
    if (!clock.SleepFor(kPause, stop)) return status;
  }
}

}  // namespace hetero::base
