#pragma once

#include <memory>

#include "runtime/train/models/model.h"

namespace hetero::train {

// torchvision.models.resnet18 and resnet50 (He et al., "Deep residual learning for image
// recognition", 2015; the stride of resnet50's blocks sits in the 3x3 convolution, "v1.5").
std::shared_ptr<Model> MakeResNet18(const ModelOptions& options);
std::shared_ptr<Model> MakeResNet50(const ModelOptions& options);

}  // namespace hetero::train
