#include "runtime/train/checkpoint/state_files.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/feed/safetensors.h"
#include "runtime/train/checkpoint/state_tensors.h"
#include "runtime/train/pipeline_parallel/stage_link.h"

namespace hetero::train {
namespace {

using Metadata = std::map<std::string, std::string>;

Metadata ModelMetadata(const std::string& model_name) {
  return {{"format", "pt"}, {"model", model_name}};
}
Metadata OptimizerMetadata() { return {{"format", "pt"}}; }

feed::TensorView ViewOf(const std::string& name, const feed::Tensor& tensor) {
  return {.name = name, .type = tensor.type, .shape = tensor.shape, .data = tensor.data.data()};
}

// The parameter that a tensor of the optimiser belongs to.
std::string ParameterOf(const std::string& optimizer_tensor) {
  return optimizer_tensor.substr(0, optimizer_tensor.rfind('.'));
}

// `bytes` of one file as one file per partition.
absl::StatusOr<std::vector<std::string>> Split(const std::string& name, const std::string& bytes,
                                               const PartitionLayout& layout, int32_t partitions,
                                               bool of_optimizer) {
  HETERO_ASSIGN_OR_RETURN(const feed::SafetensorsFile file, feed::ParseSafetensors(name, bytes));
  std::vector<std::vector<feed::TensorView>> views(static_cast<size_t>(partitions));
  for (const auto& [key, tensor] : file.tensors) {
    const auto owner = layout.partition.find(of_optimizer ? ParameterOf(key) : key);
    if (owner == layout.partition.end()) {
      return absl::FailedPreconditionError(
          absl::StrCat(name, " has a tensor ", key, " that this model has not"));
    }
    views[static_cast<size_t>(owner->second)].push_back(ViewOf(key, tensor));
  }
  std::vector<std::string> parts;
  for (const auto& part : views) parts.push_back(feed::SafetensorsBytes(part, {}));
  return parts;
}

// Files of partitions as one; what they hold was made by TensorFileBytes.
std::string Merge(const std::vector<const std::string*>& parts, const Metadata& metadata) {
  std::vector<feed::SafetensorsFile> files;
  for (const std::string* part : parts) {
    absl::StatusOr<feed::SafetensorsFile> file = feed::ParseSafetensors("a partition", *part);
    TORCH_CHECK(file.ok(), file.status().ToString());
    files.push_back(*std::move(file));
  }
  std::vector<feed::TensorView> views;
  for (const feed::SafetensorsFile& file : files) {
    for (const auto& [name, tensor] : file.tensors) views.push_back(ViewOf(name, tensor));
  }
  return feed::SafetensorsBytes(views, metadata);
}

CheckpointFiles MergeParts(const std::vector<StatePart>& parts, const std::string& model_name) {
  std::vector<const std::string*> models, optimizers;
  for (const StatePart& part : parts) {
    models.push_back(&part.model);
    optimizers.push_back(&part.optimizer);
  }
  return {{kModelFile, Merge(models, ModelMetadata(model_name))},
          {kOptimizerFile, Merge(optimizers, OptimizerMetadata())}};
}

StatePart OwnPart(const TrainingState& state) {
  return {
      .model = TensorFileBytes(CopyOf(ModelTensors(state.model())), {}),
      .optimizer = TensorFileBytes(CopyOf(OptimizerTensors(state.model(), state.optimizer())), {})};
}

absl::Status RestorePart(const StatePart& part, TrainingState& state) {
  state.touched = true;
  HETERO_RETURN_IF_ERROR(CopyFromTensorFile(absl::StrCat("the checkpoint's ", kModelFile),
                                            part.model, ModelTensors(state.model())));
  return CopyFromTensorFile(absl::StrCat("the checkpoint's ", kOptimizerFile), part.optimizer,
                            OptimizerTensors(state.model(), state.optimizer()));
}

}  // namespace

absl::StatusOr<std::vector<StatePart>> SplitState(const CheckpointPlace::Loaded& checkpoint,
                                                  const PartitionLayout* layout,
                                                  int32_t partitions) {
  const std::string& model = checkpoint.files.at(kModelFile);
  const std::string& optimizer = checkpoint.files.at(kOptimizerFile);
  if (layout == nullptr) return std::vector<StatePart>{{.model = model, .optimizer = optimizer}};
  const auto name = [&](const char* file) { return absl::StrCat(checkpoint.folder, "/", file); };
  HETERO_ASSIGN_OR_RETURN(std::vector<std::string> models,
                          Split(name(kModelFile), model, *layout, partitions, false));
  HETERO_ASSIGN_OR_RETURN(std::vector<std::string> optimizers,
                          Split(name(kOptimizerFile), optimizer, *layout, partitions, true));
  std::vector<StatePart> parts;
  for (size_t i = 0; i < models.size(); ++i) {
    parts.push_back({.model = std::move(models[i]), .optimizer = std::move(optimizers[i])});
  }
  return parts;
}

absl::Status RestoreParts(const std::vector<StatePart>& parts, const GlooGroup* group,
                          TrainingState& state) {
  if (group == nullptr || !group->place().partitioned()) return RestorePart(parts.front(), state);
  StageLink link(*group);
  if (!group->place().first()) {
    StatePart part{.model = link.ReceiveBytes(0)};
    part.optimizer = link.ReceiveBytes(0);
    return RestorePart(part, state);
  }
  for (int32_t stage = 1; stage < group->place().partitions; ++stage) {
    const StatePart& part = parts[static_cast<size_t>(stage)];
    link.SendBytes(part.model, stage);
    link.SendBytes(part.optimizer, stage);
    link.Drain();
  }
  return RestorePart(parts.front(), state);
}

CheckpointWriter::Source GatherState(const TrainingState& state, const GlooGroup* group,
                                     const std::string& model_name) {
  if (group != nullptr && group->place().pipeline != 0) return {};
  if (group == nullptr || !group->place().partitioned()) {
    return [model = CopyOf(ModelTensors(state.model())),
            optimizer = CopyOf(OptimizerTensors(state.model(), state.optimizer())), model_name] {
      return CheckpointFiles{{kModelFile, TensorFileBytes(model, ModelMetadata(model_name))},
                             {kOptimizerFile, TensorFileBytes(optimizer, OptimizerMetadata())}};
    };
  }
  StageLink link(*group);
  StatePart own = OwnPart(state);
  if (!group->place().first()) {
    link.SendBytes(own.model, 0);
    link.SendBytes(own.optimizer, 0);
    link.Drain();
    return {};
  }
  std::vector<StatePart> parts = {std::move(own)};
  for (int32_t stage = 1; stage < group->place().partitions; ++stage) {
    parts.push_back({.model = link.ReceiveBytes(stage)});
    parts.back().optimizer = link.ReceiveBytes(stage);
  }
  return [parts = std::move(parts), model_name] { return MergeParts(parts, model_name); };
}

}  // namespace hetero::train
