#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "hetero/model.h"

namespace hetero::train {

// Takes from training the parameters that the patterns of `spec.training.model.freeze` name: they
// get no gradient, and the optimiser leaves them as they are. kInvalidArgument begins with the
// field: a pattern names nothing, or nothing is left to train.
absl::Status FreezeLayers(Model& model, const std::vector<std::string>& patterns);

// model.train(), but layers of which no parameter is trained stay in evaluation mode: batch norm
// there uses the statistics it has and keeps them, and dropout leaves nothing out.
void TrainUnfrozen(Model& model);

}  // namespace hetero::train
