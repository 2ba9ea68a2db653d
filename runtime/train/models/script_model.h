#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/train/models/model.h"

namespace hetero::train {

// A network from a file that Python's torch.jit.save wrote, with the weights stored in it.
//
// Only scripted modules train rightly. A traced one has recorded what its layers did in the mode it
// was traced in, so that dropout and batch norm no longer follow train() and eval(): such a file is
// refused (kInvalidArgument) and the layer named. So is one that does not give
// [N, `classes`] for pictures of `input`. Throws nothing. Safe from any thread.
absl::StatusOr<std::shared_ptr<Model>> OpenScriptModel(const std::string& path, int32_t classes,
                                                       const api::ImageShape& input);

}  // namespace hetero::train
