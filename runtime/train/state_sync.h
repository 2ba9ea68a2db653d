#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "runtime/train/checkpoint/checkpointer.h"
#include "runtime/train/checkpoint/training_state.h"
#include "runtime/train/pipeline_parallel/partition.h"
#include "runtime/train/process_group/agreement.h"
#include "runtime/train/process_group/gloo_group.h"

namespace hetero::train {

// The newest step at which ranks that are there hold the whole model, of each partition at least
// one; `steps` has how many each rank has done, or kNoState. kNoState when there is none.
inline constexpr int64_t kNoState = -1;
int64_t NewestCommonStep(const std::vector<int64_t>& steps, int32_t partitions);

// Brings all ranks of a newly formed group to the same state. Of the ranks that hold the newest
// common step, the lowest of each partition gives parameters, buffers and optimiser state to the
// others of its partition. When there is no such step, the job goes on from the newest checkpoint,
// which rank 0 reads, or from the fresh model. What a rank holds is not touched unless it stands
// elsewhere, so a group that breaks meanwhile loses nothing.
struct StateSync {
  GlooGroup* group = nullptr;  // null for a job of one rank
  Agreement& agreement;
  int32_t rank = 0;
  const PartitionLayout* layout = nullptr;  // null without partitions
  // Builds a second model of this rank, as the first was before the first step.
  std::function<absl::StatusOr<RankModel>()> make_model;
  // Rank 0's when the job has checkpoints, else null; `failure` says why it could not be opened.
  Checkpointer* checkpointer = nullptr;
  absl::Status failure;
  bool stop = false;  // this rank was asked to stop

  // Errors are the same on all ranks: what a rank met while loading, kCancelled on a stop. Throws
  // what LibTorch throws.
  absl::Status Run(TrainingState& state);

 private:
  absl::Status Begin(TrainingState& state);
};

}  // namespace hetero::train
