#include "runtime/train/models/frozen_layers.h"

#include <torch/torch.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/train/models/tensor_names.h"

namespace hetero::train {
namespace {

constexpr char kField[] = "spec.training.model.freeze";

bool IsFrozen(const torch::Tensor& parameter) { return !parameter.requires_grad(); }

}  // namespace

absl::Status FreezeLayers(Model& model, const std::vector<std::string>& patterns) {
  std::vector<std::string> names;
  std::vector<torch::Tensor> parameters;
  int64_t all = 0, trained = 0;
  for (const auto& parameter : model.named_parameters()) {
    names.push_back(parameter.key());
    parameters.push_back(parameter.value());
    all += parameter.value().numel();
  }
  HETERO_RETURN_IF_ERROR(ChooseTensors(kField, patterns, names,
                                       [&](size_t i) { parameters[i].requires_grad_(false); }));
  for (const torch::Tensor& parameter : parameters) {
    if (!IsFrozen(parameter)) trained += parameter.numel();
  }
  if (trained == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(kField, ": names all of the model's parameters; leave some to be trained"));
  }
  log::Info("some layers are frozen", {{"trained_parameters", trained}, {"parameters", all}});
  return absl::OkStatus();
}

void TrainUnfrozen(Model& model) {
  model.train();
  for (const std::shared_ptr<torch::nn::Module>& module : model.modules(/*include_self=*/false)) {
    const std::vector<torch::Tensor> parameters = module->parameters();
    if (!parameters.empty() && std::all_of(parameters.begin(), parameters.end(), IsFrozen)) {
      module->eval();
    }
  }
}

}  // namespace hetero::train
