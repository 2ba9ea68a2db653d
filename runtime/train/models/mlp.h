#pragma once

#include <memory>

#include "runtime/train/models/model.h"

namespace hetero::train {

// Flatten, Linear 256, ReLU, Linear 128, ReLU, Linear classes: the parameters of
// torch.nn.Sequential(Flatten, Linear, ReLU, Linear, ReLU, Linear), "1.weight" to "5.bias".
std::shared_ptr<Model> MakeMlp(const ModelOptions& options);

}  // namespace hetero::train
