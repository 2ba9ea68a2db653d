#pragma once

#include <cstdint>

#include "api/hetero_training_job.h"

namespace hetero::train {

// The learning rate of optimiser step `step` (0-based), a pure function of the job.
struct LearningRateOptions {
  api::Schedule schedule;
  double learning_rate = 0;  // spec.training.optimizer.learningRate
  int32_t world_size = 1;
  int64_t total_steps = 1;
  int64_t steps_per_epoch = 1;
};

// The base rate is learning_rate, times world_size with LinearWithWorldSize (Goyal et al.,
// "Accurate, large minibatch SGD", 2017). The first warmup_steps steps rise linearly: (step + 1) /
// warmup_steps of the base. Then Constant stays there; Step multiplies by gamma after every
// step_epochs epochs, counted from the first; Cosine goes from the base to min_learning_rate along
// half a cosine over the steps after the warm-up (torch's CosineAnnealingLR with T_max =
// total_steps - warmup_steps).
double LearningRateAt(const LearningRateOptions& options, int64_t step);

}  // namespace hetero::train
