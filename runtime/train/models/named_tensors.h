#pragma once

#include <torch/torch.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "hetero/model.h"

// Tensors under names, and as files of the safetensors format, which Python loads. Functions throw
// what LibTorch throws.
namespace hetero::train {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// Parameters, then buffers, under the model's names: torchvision's for built-in models. Views, not
// copies.
NamedTensors ModelTensors(const Model& model);

// Row-major copies on the CPU, so that training can go on while they are written.
NamedTensors CopyOf(const NamedTensors& tensors);

// A safetensors file of row-major tensors on the CPU.
std::string TensorFileBytes(const NamedTensors& tensors,
                            const std::map<std::string, std::string>& metadata);
// Copies the values of a safetensors file into `tensors`, in place. kDataLoss for a malformed file;
// kFailedPrecondition names a tensor that is missing, too many, or of another shape or type, and
// leaves `tensors` as they were.
absl::Status CopyFromTensorFile(const std::string& name, const std::string& bytes,
                                const NamedTensors& tensors);

}  // namespace hetero::train
