#include "tests/unit/runtime/train/golden_weights.h"

#include <cmath>
#include <fstream>

#include "tests/support/paths.h"

namespace hetero::train {
namespace {

torch::Tensor Uniform(int64_t count, int64_t key) {
  torch::Tensor values = torch::empty({count});
  float* out = values.data_ptr<float>();
  for (int64_t i = 0; i < count; ++i) {
    auto h = static_cast<uint32_t>(i * 2654435761 + key * 40503 + 12345);
    h ^= h >> 15;
    h *= 2246822519u;
    h ^= h >> 13;
    out[i] = static_cast<float>(h / 4294967296.0);
  }
  return values;
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

void Fill(const std::string& name, const torch::Tensor& tensor, int64_t key) {
  if (!tensor.is_floating_point()) return;
  const torch::Tensor u = Uniform(tensor.numel(), key).reshape(tensor.sizes());
  torch::Tensor value;
  if (EndsWith(name, "running_mean")) {
    value = (u - 0.5) * 0.2;
  } else if (EndsWith(name, "running_var")) {
    value = 0.5 + u;
  } else if (tensor.dim() >= 2) {
    const auto fan_in = static_cast<double>(tensor[0].numel());
    value = (u - 0.5) * (2 * std::sqrt(3.0 / fan_in));
  } else if (EndsWith(name, "weight")) {
    value = 0.9 + 0.2 * u;
  } else {
    value = (u - 0.5) * 0.2;
  }
  tensor.copy_(value);
}

}  // namespace

nlohmann::json ReadGolden(const std::string& name) {
  std::ifstream file(testing::SourceDir() + "/tests/golden/models/" + name);
  return nlohmann::json::parse(file);
}

void FillWeights(Model& model) {
  torch::NoGradGuard no_grad;
  int64_t key = 0;
  for (const auto& entry : model.named_parameters()) Fill(entry.key(), entry.value(), key++);
  for (const auto& entry : model.named_buffers()) Fill(entry.key(), entry.value(), key++);
}

torch::Tensor GoldenPicture(int64_t samples, int64_t channels, int64_t side) {
  return (Uniform(samples * channels * side * side, 9999) * 2 - 1)
      .reshape({samples, channels, side, side});
}

}  // namespace hetero::train
