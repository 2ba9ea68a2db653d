#pragma once

#include <cstdint>
#include <optional>

#include "api/hetero_training_job.h"
#include "runtime/job/step_plan.h"

namespace hetero::job {

enum class Split { kTrain, kValidation };

// One batch that a rank will need, in the order in which it needs them.
struct PlannedBatch {
  Split split = Split::kTrain;
  int64_t step = 0;        // train: the global step; validation: batch number inside the evaluation
  int64_t epoch = 0;       // train: the epoch; validation: always 0, so its samples never vary
  int64_t evaluation = 0;  // validation: which evaluation, from 0
  SlotRange slots;         // this rank's share; may have count 0
};

// Everything one rank does, as a pure sequence: training steps with the batches of each evaluation
// after the step that triggers it. Evaluations run after every `every_epochs` epochs or
// `every_steps` steps (either triggers when both are given), and once after the last step when a
// validation set exists. A validation batch has batch_size_per_worker x ranks samples. Immutable,
// safe from any thread.
class Schedule {
 public:
  struct Options {
    StepPlan::Options training;
    int64_t validation_samples = 0;             // 0: no evaluations
    std::optional<api::Evaluation> evaluation;  // absent: only after the last step
  };
  Schedule(const Options& options, int32_t rank);

  const StepPlan& training() const { return training_; }
  // Batches of one evaluation; the same for all ranks. 0 without a validation set.
  int64_t evaluation_batches() const;
  // Whether an evaluation follows this training step.
  bool EvaluatesAfter(int64_t step) const;
  int64_t evaluations() const;
  // Length of the sequence.
  int64_t size() const;
  // Index of the batch of training step `step`, or size() for step total_steps(); the batches of an
  // evaluation that follows step `step` - 1 come before it.
  int64_t IndexOfStep(int64_t step) const;
  // The batch at `index` in [0, size()); O(log steps).
  PlannedBatch At(int64_t index) const;

 private:
  // Evaluations that follow the first `steps` training steps.
  int64_t EvaluationsWithin(int64_t steps) const;

  int32_t rank_;
  StepPlan training_;
  std::optional<StepPlan> validation_;
  int64_t epoch_period_ = 0;   // in steps; 0: not by epochs
  int64_t step_period_ = 0;    // in steps; 0: not by steps
  int64_t common_period_ = 0;  // steps at which both fall together; 0: never
};

}  // namespace hetero::job
