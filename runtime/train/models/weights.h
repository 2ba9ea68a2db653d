#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "hetero/model.h"

namespace hetero::train {

// Weights as safetensors, one tensor per parameter and buffer under its name in the model. For
// built-in models these are torchvision's names and layouts, so that
//   model.load_state_dict(safetensors.torch.load_file(path))
// takes the file, and safetensors.torch.save_file(model.state_dict(), path) makes one.

// Replaces all parameters and buffers in place; the element type is converted to the model's.
// kFailedPrecondition lists names and shapes that differ: nothing is replaced then. A buffer
// `num_batches_tracked` may be missing, as in old files. Tensors that a pattern of `exclude` names
// (NamesTensor()) stay as they are, whatever the file has of them; kInvalidArgument begins with
// the field when a pattern names none, in the model or in the file.
absl::Status LoadWeights(Model& model, const std::string& path,
                         const std::vector<std::string>& exclude = {});

// Writes the file whole or not at all.
absl::Status SaveWeights(const Model& model, const std::string& path);

}  // namespace hetero::train
