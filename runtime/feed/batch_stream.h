#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/feed/wait_causes.h"
#include "runtime/feed/wire/batch.h"

namespace hetero::feed {

// Counters of a rank's input since the start; monotone, but for bytes_waiting.
struct StreamStats {
  int64_t batches = 0;
  int64_t samples = 0;
  int64_t bytes = 0;
  int64_t bytes_waiting = 0;  // of batches that arrived and were not taken yet
  double wait_seconds = 0;    // Next() blocked
  WaitCauses waits;           // the same by cause
  int64_t tickets_reissued = 0;
  int64_t duplicates_dropped = 0;
  int64_t tickets_moved = 0;    // from a busy worker to an idle one
  int64_t batches_damaged = 0;  // on their way, found by their checksums and asked for again
};

// The batches of one rank in the order of its Schedule, each exactly once, wherever they were
// produced. Owned and called by one training thread.
class BatchStream {
 public:
  virtual ~BatchStream() = default;

  // The next batch; blocks until it is there. kOutOfRange after the last one; kCancelled when
  // `stop` is requested; otherwise the error of a ticket that nobody could serve, which ends the
  // job.
  virtual absl::StatusOr<std::unique_ptr<Batch>> Next(std::stop_token stop) = 0;
  virtual StreamStats stats() const = 0;
};

}  // namespace hetero::feed
