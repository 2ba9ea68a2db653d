#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/feed/batch_producer.h"

namespace hetero::feed {

// What came of entries of a batch that were produced in child processes.
struct GuardedSamples {
  std::vector<BadSample> bad_samples;
  std::vector<FatalSample> fatal;  // new ones; the producer avoids them already
};

struct GuardLimits {
  int64_t memory_bytes = int64_t{4} << 30;  // that a child may take, beyond what this process has
  base::Duration patience = std::chrono::seconds(60);  // with one sample
};
// The usual ones, with half of the cgroup's memory where that is less: where a child takes all of
// it, the system may end every process of the container.
GuardLimits DefaultGuardLimits();

// Produces entries [begin, end) of `batch`, which `producer` allocated, in child processes of this
// one, one sample after the other: what ends the process that touches it ends only a child. A
// sample that has ended two of them, each of which began with it, is fatal: `producer` avoids it
// from then on, and what replaces a bad sample takes its place. Twice, because a child may be
// killed from outside, and a batch must not depend on that.
//
// Errors: those of Produce(); kDeadlineExceeded naming a sample that takes longer than the
// patience, kUnavailable when the system has no process or memory to give, kCancelled when `stop`
// is requested. Thread-safe.
absl::StatusOr<GuardedSamples> ProduceGuarded(const BatchProducer& producer, Batch* batch,
                                              int64_t begin, int64_t end, const GuardLimits& limits,
                                              base::Clock& clock, const std::stop_token& stop);

}  // namespace hetero::feed
