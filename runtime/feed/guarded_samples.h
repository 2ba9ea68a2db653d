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
  // That a sample may need. One that wants more is at fault wherever it is read, so this is the
  // same everywhere: a batch must not depend on how much memory a worker has.
  static constexpr int64_t kFaultBytes = int64_t{4} << 30;
  int64_t fault_bytes = kFaultBytes;
  int64_t memory_bytes = kFaultBytes;  // that a child may take, beyond what this process has
  base::Duration patience = std::chrono::seconds(60);  // with one sample
};
// The usual ones, with half of the cgroup's memory where that is less: where a child takes all of
// it, the system may end every process of the container.
GuardLimits DefaultGuardLimits();

// Produces entries [begin, end) of `batch`, which `producer` allocated, in child processes of this
// one, one sample after the other: what ends the process that touches it ends only a child. A
// sample that has ended two of them, each of which began with it, is fatal: `producer` avoids it
// from then on, and what replaces a bad sample takes its place. Twice, because a child may be ended
// by something else, and a batch must not depend on that. Nor on memory that this machine lacks: a
// child that was killed, or that came to the end of `memory_bytes` below `fault_bytes`, says
// nothing about its sample.
//
// Errors: those of Produce(); kDeadlineExceeded naming a sample that takes longer than the
// patience, kResourceExhausted naming one for which there was no memory twice, kUnavailable when
// the system has no process or memory to give, kCancelled when `stop` is requested. Thread-safe.
absl::StatusOr<GuardedSamples> ProduceGuarded(const BatchProducer& producer, Batch* batch,
                                              int64_t begin, int64_t end, const GuardLimits& limits,
                                              base::Clock& clock, const std::stop_token& stop);

}  // namespace hetero::feed
