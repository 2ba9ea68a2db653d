#pragma once

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "runtime/pipeline/operator.h"

namespace hetero::pipeline {

// What one uint8 entry of spec.pipeline does to a picture: no operator when it is skipped in
// validation (docs/decisions/0001), two where the validation form needs two. `spec` has passed
// api::CheckOperator() and has its defaults. kInvalidArgument, without a place, for a parameter
// beyond the kernel's own limits. Decode, Normalize and Cast are not uint8 operators and are
// refused.
absl::StatusOr<Operators> MakeOperators(const api::OperatorSpec& spec,
                                        const OperatorContext& context);

}  // namespace hetero::pipeline
