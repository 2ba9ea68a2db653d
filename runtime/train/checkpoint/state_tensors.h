#pragma once

#include "runtime/train/models/named_tensors.h"
#include "runtime/train/optimizer/optimizer.h"

// What a rank has learned, as named tensors: ModelTensors(), and the optimiser's state.
namespace hetero::train {

// "<parameter>.<torch's word for it>", for example "fc.weight.momentum_buffer". Views, not copies.
// `optimizer` is that of the model's parameters.
NamedTensors OptimizerTensors(const Model& model, const Optimizer& optimizer);

// Names of the files of a checkpoint.
inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kOptimizerFile[] = "optimizer.safetensors";

}  // namespace hetero::train
