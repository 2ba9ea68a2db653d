#pragma once

#include <string>

#include "api/hetero_training_job.h"

namespace hetero::job {

// What of a manifest decides, beside dataset, seed and samples per step, which samples a step
// trains and what they look like. As text, for messages.
struct SampleOrder {
  std::string shuffle;     // "Full", "Block of 1024", "Block of 1024, 16 mixed", "None"
  std::string last_batch;  // "Keep", "Drop"
  // 16 hex digits over the operators and their parameters, as filled with defaults, and the views.
  // Where an operator runs does not count, nor the path of a plugin.
  std::string pipeline;
  bool operator==(const SampleOrder&) const = default;
};

// As SampleOrder::shuffle.
std::string ShuffleText(const api::Shuffle& shuffle);

SampleOrder SampleOrderOf(const api::HeteroTrainingJob& job);

}  // namespace hetero::job
