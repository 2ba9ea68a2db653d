#include "tests/unit/runtime/train/script_file.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/torch.h>

namespace hetero::train {

std::string SaveScript(const hetero::testing::TemporaryFolder& folder, const std::string& forward,
                       int64_t inputs) {
  torch::manual_seed(3);
  torch::jit::Module module("Net");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_parameter("weight", torch::randn({10, inputs}).mul_(0.1).requires_grad_(),
                            /*is_buffer=*/false);
  module.register_parameter("frozen", torch::ones({10}).requires_grad_(false), false);
  module.register_parameter("unused", torch::ones({10}).requires_grad_(), false);
  module.define(forward);
  const std::string path = folder / "net.pt";
  module.save(path);
  return "file://" + path;
}

}  // namespace hetero::train
