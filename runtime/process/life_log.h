#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "hetero/v1/membership.pb.h"
#include "runtime/feed/wire/batch.h"
#include "runtime/insight/histogram.h"

namespace hetero::process {

// The lives of a rank's sampled batches (feed::BatchTimes) to the end of the steps that used them,
// and how long all its steps took. What each step was like is told once, their histograms again and
// again. Not thread-safe.
class LifeLog {
 public:
  static constexpr size_t kMostLives = 200;  // while nobody takes them; the newest
  static constexpr size_t kMostOpen = 16;    // whose steps have not ended

  // The computation of a step begins with this batch.
  void OnBegins(const feed::Batch& batch, base::Instant now);
  // The batch was used: the step's computation is done, where its beginning was told; where it
  // was not, it begins.
  void OnUsed(const feed::Batch& batch, base::Instant now);
  // The step (counted from 1) is done, after `seconds` with all its waiting.
  void OnStep(int64_t step, double seconds, base::Instant now);

  // Adds what is new since the last call, and all histograms.
  void Take(v1::Heartbeat& heartbeat);

 private:
  struct Open {
    v1::BatchLife life;
    base::Instant began;
    std::optional<base::Instant> ended;
  };
  Open& Begin(const feed::Batch& batch, base::Instant now);

  std::map<int64_t, Open> open_;  // by step, counted from 1
  std::vector<v1::BatchLife> lives_;
  insight::Histogram queued_, work_, transfer_, window_, handover_, step_, read_, whole_step_;
};

}  // namespace hetero::process
