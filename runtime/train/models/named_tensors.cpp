#include "runtime/train/models/named_tensors.h"

#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "runtime/feed/safetensors.h"

namespace hetero::train {
namespace {

std::optional<feed::TensorType> TypeOf(const torch::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case torch::kUInt8:
      return feed::TensorType::kUint8;
    case torch::kInt32:
      return feed::TensorType::kInt32;
    case torch::kInt64:
      return feed::TensorType::kInt64;
    case torch::kFloat32:
      return feed::TensorType::kFloat32;
    case torch::kFloat64:
      return feed::TensorType::kFloat64;
    case torch::kFloat16:
      return feed::TensorType::kFloat16;
    case torch::kBFloat16:
      return feed::TensorType::kBfloat16;
    case torch::kBool:
      return feed::TensorType::kBool;
    default:
      return std::nullopt;
  }
}

std::string Shape(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace

NamedTensors ModelTensors(const Model& model) {
  NamedTensors tensors;
  for (const auto& parameter : model.named_parameters()) {
    tensors.emplace_back(parameter.key(), parameter.value().detach());
  }
  for (const auto& buffer : model.named_buffers()) {
    tensors.emplace_back(buffer.key(), buffer.value().detach());
  }
  return tensors;
}

NamedTensors CopyOf(const NamedTensors& tensors) {
  torch::NoGradGuard no_grad;
  NamedTensors copies;
  copies.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    copies.emplace_back(name, tensor.to(torch::kCPU).clone(torch::MemoryFormat::Contiguous));
  }
  return copies;
}

std::string TensorFileBytes(const NamedTensors& tensors,
                            const std::map<std::string, std::string>& metadata) {
  std::vector<feed::TensorView> views;
  views.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const std::optional<feed::TensorType> type = TypeOf(tensor);
    TORCH_CHECK(type.has_value(), name, " has a type that safetensors does not know");
    views.push_back({.name = name,
                     .type = *type,
                     .shape = tensor.sizes().vec(),
                     .data = tensor.const_data_ptr()});
  }
  return feed::SafetensorsBytes(views, metadata);
}

absl::Status CopyFromTensorFile(const std::string& name, const std::string& bytes,
                                const NamedTensors& tensors) {
  HETERO_ASSIGN_OR_RETURN(const feed::SafetensorsFile file, feed::ParseSafetensors(name, bytes));
  for (const auto& [key, tensor] : tensors) {
    const auto found = file.tensors.find(key);
    if (found == file.tensors.end()) {
      return absl::FailedPreconditionError(absl::StrCat(name, " has no tensor ", key));
    }
    if (found->second.shape != tensor.sizes().vec() || found->second.type != TypeOf(tensor)) {
      return absl::FailedPreconditionError(absl::StrCat(
          name, ": ", key, " is ", feed::TensorTypeName(found->second.type),
          Shape(found->second.shape), ", but this model needs ", Shape(tensor.sizes().vec())));
    }
  }
  if (file.tensors.size() != tensors.size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        name, " has ", file.tensors.size(), " tensors, but this model needs ", tensors.size()));
  }
  torch::NoGradGuard no_grad;
  for (const auto& [key, tensor] : tensors) {
    const feed::Tensor& stored = file.tensors.at(key);
    // from_blob wants mutable bytes; they are only read.
    auto* data = const_cast<uint8_t*>(stored.data.data());
    torch::Tensor target = tensor;
    target.copy_(torch::from_blob(data, tensor.sizes(), tensor.scalar_type()));
  }
  return absl::OkStatus();
}

}  // namespace hetero::train
