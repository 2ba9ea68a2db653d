#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/train/models/model.h"

namespace hetero::train {

// A network from a shared library that follows model_plugin.h. `options.name` is one of the
// library's names. kInvalidArgument says what is wrong with the library: it does not load, was
// built for another LibTorch or another version of the interface, does not know the name, or
// throws. The library stays loaded for the rest of the process. The caller has seeded the default
// generator.
absl::StatusOr<std::shared_ptr<Model>> MakePluginModel(const std::string& path,
                                                       const ModelOptions& options);

}  // namespace hetero::train
