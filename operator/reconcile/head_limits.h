#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

// What a head may cost the operator. Its image is the user's, so it may say anything, as often as
// it likes.
namespace hetero::reconcile {

// Bytes of a status message of a job with so many processes. One of them takes about 70.
constexpr int StatusMessageLimit(int64_t processes) {
  constexpr int64_t kOfAnyJob = 64 << 10;
  constexpr int64_t kPerProcess = 256;
  constexpr int64_t kOfTheLargestJob = 64 << 20;
  return static_cast<int>(
      std::clamp(kOfAnyJob + kPerProcess * processes, kOfAnyJob, kOfTheLargestJob));
}

// Bytes of texts that end in a status or an event: no more than the API server takes there.
inline constexpr size_t kLongestMessage = 4096;
inline constexpr size_t kLongestUri = 1024;
inline constexpr size_t kLongestDigest = 64;
inline constexpr size_t kLongestReason = 256;
inline constexpr size_t kLongestRule = 63;
inline constexpr size_t kLongestAdvice = 1024;
inline constexpr size_t kLongestField = 256;
inline constexpr size_t kLongestMember = 64;

// When the next message of one head is read. Until then it stays in the network, whose flow control
// slows the head down: nothing is lost and the stream stays open. Messages use up time: a second's
// worth at once, then as it passes. A head sends two a second. Not thread-safe.
class ReadPacer {
 public:
  static constexpr base::Duration kAtOnce = std::chrono::seconds(1);
  static constexpr base::Duration kForAny = std::chrono::milliseconds(10);
  static constexpr base::Duration kForTheLargest = std::chrono::milliseconds(500);

  // `largest` as StatusMessageLimit().
  explicit ReadPacer(int64_t largest) : largest_(std::max<int64_t>(largest, 1)) {}

  // How long to wait after a message of `bytes`; zero: not at all.
  base::Duration Wait(int64_t bytes, base::Instant now) {
    const double share = static_cast<double>(bytes) / static_cast<double>(largest_);
    const base::Duration cost = std::clamp(
        base::FromSeconds(base::ToSeconds(kForTheLargest) * share), kForAny, kForTheLargest);
    next_ = std::max<base::Instant>(next_, now - kAtOnce) + cost;
    return std::max<base::Duration>(base::Duration::zero(), next_ - now);
  }

 private:
  const int64_t largest_;
  base::Instant next_{};
};

}  // namespace hetero::reconcile
