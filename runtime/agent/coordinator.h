#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>

#include "absl/status/status.h"
#include "base/clock.h"
#include "runtime/job/stream_digest.h"

namespace hetero::agent {

// Where a rank's script stands, or wants to begin.
struct Position {
  int64_t step = 0;          // steps done; the first batch is of step `step`, counted from 0
  job::StreamDigest digest;  // of the whole job's samples of those steps
  bool proven = true;        // the digest is known
  bool operator==(const Position&) const = default;
};

// What the stream of one rank needs of the other ranks, through the head. Steps are steps done:
// N after the batch of step N - 1, counted from 0, was given out. Thread-safe.
class Coordinator {
 public:
  virtual ~Coordinator() = default;

  // Tells this rank's position and waits until all ranks of the generation have told the same.
  // kFailedPrecondition: they differ; kDeadlineExceeded names who has said nothing; kAborted: the
  // generation is over; kCancelled: `stop`.
  virtual absl::Status AgreePosition(const Position& position, const std::stop_token& stop,
                                     base::Duration deadline) = 0;
  // Before the first batch of the step that follows `step` steps is given out. Waits at most while
  // a checkpoint at or before `step` is being agreed (5 s). False: all ranks stop after the agreed
  // step, and this one gets nothing any more.
  virtual bool MayGoOn(int64_t step, const std::stop_token& stop) = 0;
  // Whether all ranks save after `step` steps. The same question has the same answer. Waits at most
  // while a checkpoint is being agreed.
  virtual bool CheckpointDue(int64_t step, const std::stop_token& stop) = 0;
  // The sum of this rank's samples from its position to the end of `step` steps. Told once each
  // step was given out, in order.
  virtual void TellDigest(int64_t step, const job::StreamDigest& own) = 0;
  // Of the whole job at the end of `step` steps; absent when it is not known in time, or not
  // proven.
  virtual std::optional<job::StreamDigest> JobDigestAt(int64_t step, const std::stop_token& stop,
                                                       base::Duration deadline) = 0;
};

}  // namespace hetero::agent
