#include "api/unsupported_fields.h"

#include <string>
#include <string_view>
#include <utility>

#include "api/enums.h"

namespace hetero::api {
namespace {

// Gathers what is refused, field by field.
class Refusals {
 public:
  void Add(std::string path, std::string reason) {
    errors_.push_back({std::move(path), std::move(reason)});
  }
  std::vector<FieldError> Take() { return std::move(errors_); }

 private:
  std::vector<FieldError> errors_;
};

std::string Unsupported(std::string_view what, std::string_view remedy) {
  std::string reason(what);
  reason += " is not supported yet; ";
  return reason += remedy;
}

void CheckModel(const Model& model, Refusals* refusals) {
  const std::string path = "spec.training.model";
  const bool built_in = model.torch_script.empty() && model.plugin.empty();
  if (built_in && model.name != "mlp" && model.name != "resnet18" && model.name != "resnet50" &&
      model.name != "vit_b_16") {
    refusals->Add(path + ".name", Unsupported("model \"" + model.name + "\"",
                                              "name one of mlp, resnet18, resnet50, vit_b_16, or "
                                              "give your own as torchScript or plugin"));
  }
}

// Of a plugin only the trainer knows whether its model has cut points.
void CheckParallelism(const Training& training, Refusals* refusals) {
  if (training.parallelism.partitions == 1) return;
  const std::string path = "spec.training.parallelism.partitions";
  const Model& model = training.model;
  if (!model.torch_script.empty()) {
    refusals->Add(path, "a TorchScript file has no cut points; use 1, or a plugin whose model has");
  } else if (model.plugin.empty() && model.name != "vit_b_16") {
    refusals->Add(path, "model \"" + model.name + "\" has no cut points; use 1, or vit_b_16");
  }
}

void CheckTraining(const Training& training, Refusals* refusals) {
  const std::string path = "spec.training";
  if (!training.script) CheckModel(training.model, refusals);
  if (!training.script) CheckParallelism(training, refusals);
}

}  // namespace

std::vector<FieldError> UnsupportedFields(const HeteroTrainingJob& job) {
  const Spec& spec = job.spec;
  Refusals refusals;
  CheckTraining(spec.training, &refusals);
  return refusals.Take();
}

}  // namespace hetero::api
