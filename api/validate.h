#pragma once

#include <vector>

#include "api/findings.h"
#include "api/hetero_training_job.h"

// The rules that involve several fields; crds/ states the same as CEL. Limits of single fields are
// checked while decoding. Objects that `findings` already knows as broken are passed over.
namespace hetero::api {

void Validate(const HeteroTrainingJob& job, Findings& findings);

// Which parameters an operator of the pipeline takes, besides op, repeat and placement.
struct OperatorRule {
  OperatorKind op;
  std::vector<const char*> required;
  std::vector<const char*> optional;
};
const std::vector<OperatorRule>& OperatorRules();

// Rules for spec.pipeline; part of Validate().
void ValidatePipeline(const std::vector<OperatorSpec>& pipeline, Findings& findings);

}  // namespace hetero::api
