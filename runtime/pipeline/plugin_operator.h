#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/pipeline/operator.h"

namespace hetero::pipeline {

// The operator `name` of the shared library `path` (include/hetero/operator_plugin.h). The library
// stays loaded until the process ends. kNotFound: no such file; kInvalidArgument, without a place:
// not a library, built for another version of the interface, or the library refuses the name or the
// parameters, in its words.
absl::StatusOr<std::unique_ptr<Operator>> LoadPluginOperator(
    const std::string& path, const std::string& name,
    const std::map<std::string, std::string>& parameters, bool training);

}  // namespace hetero::pipeline
