#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "base/clock.h"
#include "runtime/feed/producer_state.h"
#include "runtime/feed/wire/batch.h"

namespace hetero::feed {

// Notes where single batches of a rank spend their time, from when their tickets are given to a
// producer until they are there (BatchTimes): those of the first kFirst steps and of every
// kOneOf-th, by the step, so that all ranks look at the same ones. Validation is left out. All
// moments are the trainer's; what the producer tells of its own time are lengths, and no longer
// than what passed here. Not thread-safe.
class BatchLives {
 public:
  static constexpr int64_t kFirst = 10;
  static constexpr int64_t kOneOf = 100;
  static bool IsSampled(const Ticket& ticket);

  // The ticket goes to `producer` now; of several times the last counts.
  void OnAsked(ProducerId producer, const Ticket& ticket, base::Instant now, base::WallTime wall);
  // Its batch, from that producer, takes its place in the window. Sets batch->times, unless the
  // ticket is none of the sampled.
  void OnArrived(ProducerId producer, base::Instant now, Batch* batch);
  // The batch was taken; nobody else is waited for.
  void Forget(int64_t ticket);

 private:
  struct Asked {
    base::Instant at;
    base::WallTime wall;
  };
  std::map<std::pair<int64_t, ProducerId>, Asked> asked_;  // by ticket
};

}  // namespace hetero::feed
