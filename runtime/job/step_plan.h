#pragma once

#include <cstdint>
#include <optional>

#include "api/hetero_training_job.h"

namespace hetero::job {

// Slots [first, first + count) of an epoch; a slot is a position in the epoch's permutation.
struct SlotRange {
  int64_t first = 0;
  int64_t count = 0;
  bool operator==(const SlotRange&) const = default;
};

// One optimiser step over all ranks.
struct Step {
  int64_t step = 0;           // 0-based over the whole job
  int64_t epoch = 0;          // 0-based
  int64_t step_in_epoch = 0;  // 0-based
  SlotRange slots;            // all ranks together
};

// The arithmetic of steps: which slots of which epoch each rank trains at each step. With a
// constant global batch (batch_size_per_worker x ranks x accumulation) the slots of a step are the
// same for any number of ranks; rank r takes its contiguous share. `partitions` consecutive ranks
// that share one model are a pipeline; the first of them takes the shares of all. Immutable, safe
// from any thread.
class StepPlan {
 public:
  struct Options {
    int64_t samples = 0;  // of one epoch, > 0
    int64_t batch_size_per_worker = 0;
    int32_t ranks = 1;
    int32_t partitions = 1;  // divides ranks
    int32_t accumulation = 1;
    api::LastBatch last_batch = api::LastBatch::kKeep;
    std::optional<int64_t> epochs;     // at least one of the two
    std::optional<int64_t> max_steps;  // whichever ends first
  };
  explicit StepPlan(const Options& options);

  // Samples of a full step over all ranks.
  int64_t global_batch() const { return global_batch_; }
  // Keep: ceil(samples / global_batch): 60,000 / (2 x 128) gives 235. Drop: floor, which is 0 with
  // fewer samples than one global batch: the plan is then empty and the caller refuses the job.
  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  // epochs x steps_per_epoch or max_steps, whichever is less.
  int64_t total_steps() const { return total_steps_; }
  // Epochs that have at least one step.
  int64_t total_epochs() const;

  // The step with 0 <= step < total_steps().
  Step At(int64_t step) const;
  // Slots of `rank` at `step`: the step's slots split contiguously, sizes differing by at most one,
  // the first ranks taking the longer shares. count 0 when the tail has fewer slots than ranks, and
  // for every rank of a pipeline but its first.
  SlotRange Share(int64_t step, int32_t rank) const;
  // What the pipeline of `rank` trains at `step`: the shares of its ranks together. The rank's own
  // share without partitions.
  SlotRange PipelineShare(int64_t step, int32_t rank) const;
  // Factor for the mean loss of a rank, or of its pipeline, so that the mean over these equals the
  // mean over the step's samples: ranks x n_r / n. The factors of all add up to their number.
  double LossScale(int64_t step, int32_t rank) const;
  bool IsLastOfEpoch(int64_t step) const;

 private:
  Options options_;
  int64_t global_batch_;
  int64_t steps_per_epoch_;
  int64_t total_steps_;
};

}  // namespace hetero::job
