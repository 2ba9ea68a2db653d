#include "runtime/train/models/parameter_crc.h"

#include "base/crc32c.h"

namespace hetero::train {

uint32_t ParameterCrc(const Model& model) {
  torch::NoGradGuard no_grad;
  uint32_t crc = 0;
  const auto add = [&crc](const torch::Tensor& tensor) {
    const torch::Tensor values = tensor.detach().to(torch::kCPU).contiguous();
    crc = base::Crc32c(values.data_ptr(), values.nbytes(), crc);
  };
  for (const torch::Tensor& parameter : model.parameters()) add(parameter);
  for (const torch::Tensor& buffer : model.buffers()) add(buffer);
  return crc;
}

}  // namespace hetero::train
