#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "runtime/job/schedule.h"
#include "runtime/pipeline/operator.h"

namespace hetero::pipeline {

// The manifest's name of an operator ("RandomResizedCrop").
const char* OperatorName(api::OperatorKind kind);

// What one uint8 entry of spec.pipeline does to a picture of `channels` channels in `split`: no
// operator when it is skipped in validation (docs/decisions/0001), two where the validation form
// needs two. kInvalidArgument, without a place, for a missing or impossible parameter. Decode,
// Normalize and Cast are not uint8 operators and are refused. `clock` must outlive the operators.
absl::StatusOr<std::vector<std::unique_ptr<Operator>>> MakeOperators(const api::OperatorSpec& spec,
                                                                     int32_t channels,
                                                                     job::Split split,
                                                                     base::Clock& clock);

}  // namespace hetero::pipeline
