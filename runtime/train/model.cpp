#include "runtime/train/model.h"

#include <mutex>

#include "absl/strings/str_cat.h"
#include "runtime/train/mlp.h"
#include "runtime/train/resnet.h"
#include "runtime/train/vit.h"

namespace hetero::train {
namespace {

std::mutex& GeneratorMutex() {
  static std::mutex mutex;  // guards the process's default generator
  return mutex;
}

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
  if (options.name == "vit_b_16" && (input.height != input.width || input.height % 16 != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("model vit_b_16 needs square pictures whose side is a multiple of 16, got ",
                     input.height, " x ", input.width, ". Add a Resize to spec.pipeline"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<Model>> MakeModel(const ModelOptions& options, int64_t seed) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  std::lock_guard lock(GeneratorMutex());
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

}  // namespace hetero::train
