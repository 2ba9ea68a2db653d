#pragma once

#include <cstdint>
#include <memory>

#include "runtime/train/models/model.h"

namespace hetero::train {

struct VitShape {
  int64_t patch = 16, layers = 12, heads = 12, width = 768, mlp_width = 3072;
};

// torchvision.models.VisionTransformer of any size.
std::shared_ptr<Model> MakeVisionTransformer(const ModelOptions& options, const VitShape& shape);

// torchvision.models.vit_b_16 (Dosovitskiy et al., "An image is worth 16x16 words", 2020) for
// square pictures whose side is a multiple of 16.
std::shared_ptr<Model> MakeVitB16(const ModelOptions& options);

}  // namespace hetero::train
