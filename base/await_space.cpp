#include "base/await_space.h"

#include <utility>

#include "base/log.h"

namespace hetero::base {

constexpr Duration kPause = std::chrono::seconds(1);

absl::Status WriteWhenThereIsSpace(const std::string& what, Duration patience, Clock& clock,
                                   const std::function<absl::Status()>& write,
                                   std::stop_token stop) {
  const Instant deadline = clock.Now() + patience;
  bool told = false;
  while (true) {
    absl::Status status = write();
    if (!absl::IsResourceExhausted(status) || clock.Now() >= deadline) return status;
    if (!std::exchange(told, true)) {
      log::Warning(what + " cannot be written yet; free some space there",
                   {{"reason", std::string(status.message())}, {"waits", ToSeconds(patience)}});
    }
    if (!clock.SleepFor(kPause, stop)) return status;
  }
}

}  // namespace hetero::base
