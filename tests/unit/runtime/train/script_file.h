#pragma once

#include <cstdint>
#include <string>

#include "tests/support/temporary_folder.h"

// Models of TorchScript files, made without Python.
namespace hetero::train {

// The URI of a file in `folder` with a linear layer "weight" over `inputs` numbers and ten classes,
// "frozen", which takes no gradient, and "unused", which `forward`, a function in TorchScript, need
// not use.
std::string SaveScript(const hetero::testing::TemporaryFolder& folder, const std::string& forward,
                       int64_t inputs);

// Raises for a picture that is white all over, in training.
inline constexpr char kRaisesForWhite[] = R"(
def forward(self, images):
    x = torch.flatten(images, 1)
    if self.training:
        assert float(torch.max(torch.mean(x, 1))) < 1.9, "the model does not like white"
    return torch.add(torch.matmul(x, torch.t(self.weight)), self.frozen)
)";

}  // namespace hetero::train
