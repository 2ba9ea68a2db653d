#pragma once

#include "absl/status/status.h"
#include "runtime/train/agreement.h"
#include "runtime/train/checkpointer.h"
#include "runtime/train/gloo_group.h"
#include "runtime/train/training_state.h"

namespace hetero::train {

// Brings all ranks of a newly formed group to the same state. The rank with the most steps done
// (the lowest of them) gives its parameters, buffers, optimiser state and standing to the others;
// when no rank holds any state, rank 0 takes the newest checkpoint, or the fresh model. What a rank
// holds is not touched unless it has fewer steps, so a group that breaks meanwhile loses nothing.
struct StateSync {
  GlooGroup* group = nullptr;  // null for a job of one rank
  Agreement& agreement;
  int32_t rank = 0;
  // Rank 0's when the job has checkpoints, else null; `failure` says why it could not be opened.
  Checkpointer* checkpointer = nullptr;
  absl::Status failure;
  bool stop = false;  // this rank was asked to stop

  // Errors are the same on all ranks: what rank 0 met while loading, kCancelled on a stop. Throws
  // what LibTorch throws.
  absl::Status Run(TrainingState& state);
};

}  // namespace hetero::train
