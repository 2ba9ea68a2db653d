#pragma once

#include <torch/torch.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/train/checkpoint/checkpoint_folder.h"
#include "runtime/train/models/model.h"
#include "runtime/train/optimizer.h"

// What a rank has learned, as named tensors: parameters and buffers under torchvision's names, and
// the optimiser's state as "<parameter>.<torch's word for it>", for example
// "fc.weight.momentum_buffer". Functions throw what LibTorch throws.
namespace hetero::train {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// Views, not copies.
NamedTensors ModelTensors(const Model& model);
NamedTensors OptimizerTensors(const Model& model, const Optimizer& optimizer);

// Row-major copies, so that training can go on while they are written.
NamedTensors CopyOf(const NamedTensors& tensors);

// A safetensors file of row-major tensors on the CPU.
std::string TensorFileBytes(const NamedTensors& tensors,
                            const std::map<std::string, std::string>& metadata);
// Copies the values of a safetensors file into `tensors`, in place. kDataLoss for a malformed file;
// kFailedPrecondition names a tensor that is missing, too many, or of another shape or type, and
// leaves `tensors` as they were.
absl::Status CopyFromTensorFile(const std::string& name, const std::string& bytes,
                                const NamedTensors& tensors);

// Names of the files of a checkpoint.
inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kOptimizerFile[] = "optimizer.safetensors";

}  // namespace hetero::train
