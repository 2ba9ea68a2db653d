#pragma once

#include <memory>

#include "runtime/train/model.h"

namespace hetero::train {

// torchvision.models.vit_b_16 (Dosovitskiy et al., "An image is worth 16x16 words", 2020) for
// square pictures whose side is a multiple of 16.
std::shared_ptr<Model> MakeVitB16(const ModelOptions& options);

}  // namespace hetero::train
