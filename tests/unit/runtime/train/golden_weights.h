#pragma once

#include <torch/torch.h>

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/train/models/model.h"

// The weights and inputs of tests/golden/make_model_vectors.py, by the same formula.
namespace hetero::train {

// tests/golden/models/`name`.
nlohmann::json ReadGolden(const std::string& name);
// fill() of the script.
void FillWeights(Model& model);
// picture() of the script: float32 [samples, channels, side, side].
torch::Tensor GoldenPicture(int64_t samples, int64_t channels, int64_t side);

}  // namespace hetero::train
