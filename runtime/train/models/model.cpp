#include "runtime/train/models/model.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "runtime/train/models/frozen_layers.h"
#include "runtime/train/models/mlp.h"
#include "runtime/train/models/plugin_model.h"
#include "runtime/train/models/resnet.h"
#include "runtime/train/models/script_model.h"
#include "runtime/train/models/vit.h"
#include "runtime/train/models/weights.h"

namespace hetero::train {
namespace {

base::Mutex generator_mutex;  // guards LibTorch's default generator, which is the process's

void KeepChannelsLast(Model& model) {
  torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : model.parameters()) {
    if (parameter.dim() == 4) {
      parameter.set_data(parameter.contiguous(torch::MemoryFormat::ChannelsLast));
    }
  }
}

absl::Status CheckOptions(const ModelOptions& options) {
  const api::ImageShape& input = options.input;
  if (options.classes <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("model ", options.name, " needs the number of classes; the dataset gives ",
                     options.classes, ". Set spec.dataset.classes"));
  }
  if (input.height <= 0 || input.width <= 0 || input.channels <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model ", options.name, " needs pictures of a fixed size, got ", input.height, " x ",
        input.width, " x ", input.channels, ". Add a Resize or a crop to spec.pipeline"));
  }
  return absl::OkStatus();
}

absl::Status CheckVitOptions(const ModelOptions& options) {
  const api::ImageShape& input = options.input;
  if (options.name == "vit_b_16" && (input.height != input.width || input.height % 16 != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("model vit_b_16 needs square pictures whose side is a multiple of 16, got ",
                     input.height, " x ", input.width, ". Add a Resize to spec.pipeline"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> LocalPath(const std::string& field, const std::string& uri) {
  absl::string_view path = uri;
  if (absl::ConsumePrefix(&path, "file://")) return std::string(path);
  return absl::UnimplementedError(absl::StrCat(
      field, ": ", uri, ": only file:///path can be read; mount the bucket as a volume"));
}

// From a file or a plugin.
absl::StatusOr<std::shared_ptr<Model>> MakeOwn(const api::Model& model, const ModelOptions& options,
                                               int64_t seed) {
  if (!model.torch_script.empty()) {
    HETERO_ASSIGN_OR_RETURN(const std::string path,
                            LocalPath("spec.training.model.torchScript", model.torch_script));
    return OpenScriptModel(path, options.classes, options.input);
  }
  const base::MutexLock lock(generator_mutex);
  torch::manual_seed(static_cast<uint64_t>(seed));
  return MakePluginModel(model.plugin, options);
}

}  // namespace

absl::StatusOr<std::shared_ptr<Model>> MakeModel(const ModelOptions& options, int64_t seed) {
  HETERO_RETURN_IF_ERROR(CheckOptions(options));
  HETERO_RETURN_IF_ERROR(CheckVitOptions(options));
  const base::MutexLock lock(generator_mutex);
  torch::manual_seed(static_cast<uint64_t>(seed));
  std::shared_ptr<Model> model;
  if (options.name == "mlp") {
    model = MakeMlp(options);
  } else if (options.name == "resnet18") {
    model = MakeResNet18(options);
  } else if (options.name == "resnet50") {
    model = MakeResNet50(options);
  } else if (options.name == "vit_b_16") {
    model = MakeVitB16(options);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("spec.training.model.name: there is no model \"", options.name,
                     "\"; known are mlp, resnet18, resnet50 and vit_b_16"));
  }
  if (model->channels_last()) KeepChannelsLast(*model);
  return model;
}

absl::StatusOr<std::shared_ptr<Model>> OpenModel(const api::Model& model, int32_t classes,
                                                 const api::ImageShape& input, int64_t seed) {
  ModelOptions options{.name = model.name, .classes = classes, .input = input};
  if (!model.torch_script.empty()) options.name = model.torch_script;
  std::shared_ptr<Model> opened;
  if (model.torch_script.empty() && model.plugin.empty()) {
    HETERO_ASSIGN_OR_RETURN(opened, MakeModel(options, seed));
  } else {
    HETERO_RETURN_IF_ERROR(CheckOptions(options));
    HETERO_ASSIGN_OR_RETURN(opened, MakeOwn(model, options, seed));
    if (opened->channels_last()) KeepChannelsLast(*opened);
  }
  if (!model.weights.empty()) {
    HETERO_ASSIGN_OR_RETURN(const std::string path,
                            LocalPath("spec.training.model.weights", model.weights));
    if (absl::Status status = LoadWeights(*opened, path, model.exclude); !status.ok()) {
      if (absl::IsInvalidArgument(status)) return status;
      return absl::Status(status.code(),
                          absl::StrCat("spec.training.model.weights: ", status.message()));
    }
  }
  if (!model.freeze.empty()) HETERO_RETURN_IF_ERROR(FreezeLayers(*opened, model.freeze));
  return opened;
}

}  // namespace hetero::train
