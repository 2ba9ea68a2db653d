#pragma once

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "runtime/feed/wire/batch.h"

namespace hetero::agent {

// The batches that a script was given and has not let go of, by slot. Thread-safe; one thread waits
// and holds.
class HeldBatches {
 public:
  struct Options {
    int64_t most = 0;
    base::Duration warning;   // a script waits, and the log says what it holds; and again as often
    base::Duration deadline;  // it has waited in vain
    int32_t rank = 0;         // for the log
  };
  HeldBatches(const Options& options, base::Clock& clock) : options_(options), clock_(clock) {}

  // Until one more may be held. kCancelled: `stop`; kDeadlineExceeded names what is held.
  absl::Status WaitForRoom(const std::stop_token& stop);
  // The batch of `slot` lies in `slabs`. `what`: "step 12", for messages.
  void Hold(int64_t slot, std::vector<feed::Slab> slabs, std::string what);
  // kFailedPrecondition where nothing is held.
  absl::Status Free(int64_t slot);
  // What is held stays as it is for good (feed::Slab::Leave): the script may still look at it.
  void LeaveAll();

 private:
  struct Held {
    std::vector<feed::Slab> slabs;
    std::string what;
  };

  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return static_cast<int64_t>(held_.size()) < options_.most;
  }
  std::string Describe() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  base::Clock& clock_;
  base::Mutex mutex_;
  base::CondVar freed_;
  std::map<int64_t, Held> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hetero::agent
