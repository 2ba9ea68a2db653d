#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hetero::train {

// Whether `pattern` names the tensor `name`, or a module that holds it: "layer1" and "layer*.bias"
// both name "layer1.0.bn1.bias". "*" stands for any characters, dots too.
bool NamesTensor(const std::string& pattern, const std::string& name);

// Calls `chosen` with the index of each name that one of the patterns names. kInvalidArgument
// begins with the entry of `field` that names nothing, and says what there is.
absl::Status ChooseTensors(const std::string& field, const std::vector<std::string>& patterns,
                           const std::vector<std::string>& names,
                           const std::function<void(size_t)>& chosen);

}  // namespace hetero::train
