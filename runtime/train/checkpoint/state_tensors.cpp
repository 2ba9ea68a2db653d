#include "runtime/train/checkpoint/state_tensors.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hetero::train {

NamedTensors OptimizerTensors(const Model& model, const Optimizer& optimizer) {
  std::vector<std::string> names;
  for (const auto& parameter : model.named_parameters()) names.push_back(parameter.key());
  NamedTensors tensors;
  for (const Optimizer::StateTensor& state : optimizer.state()) {
    tensors.emplace_back(absl::StrCat(names.at(state.parameter), ".", state.name), state.values);
  }
  return tensors;
}

}  // namespace hetero::train
