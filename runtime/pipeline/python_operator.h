#pragma once

#include "runtime/pipeline/operator.h"

namespace hetero::pipeline {

// `function` of the Python `module`, which makes pictures of `outputs.image.shape` of pictures of
// any shape. Where the context has no functions, which is everywhere but in CPU workers, the
// operator knows its shape and Apply() is kFailedPrecondition.
absl::StatusOr<Operators> MakePython(const api::OperatorSpec& spec, const OperatorContext& context);

}  // namespace hetero::pipeline
