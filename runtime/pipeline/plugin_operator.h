#pragma once

#include "runtime/pipeline/operator.h"

namespace hetero::pipeline {

// The operator `name` of the shared library `path` (include/hetero/operator_plugin.h). The library
// stays loaded until the process ends. kNotFound: no such file; kInvalidArgument, without a place:
// not a library, built for another version of the interface, or the library refuses the name or the
// parameters, in its words.
absl::StatusOr<Operators> MakePlugin(const api::OperatorSpec& spec, const OperatorContext& context);

}  // namespace hetero::pipeline
