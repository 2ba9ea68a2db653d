#pragma once

#include <string>
#include <vector>

#include "api/findings.h"
#include "api/hetero_training_job.h"

// The rules that involve several fields; crds/ states the same as CEL. Limits of single fields are
// checked while decoding. Objects that `findings` already knows as broken are passed over.
namespace hetero::api {

void Validate(const HeteroTrainingJob& job, Findings& findings);

// What a job with spec.training.script may not say besides; part of Validate().
void ValidateScript(const Spec& spec, Findings& findings);

// Rules for a list of stores, which stands at the path `list`; part of Validate() for spec.storage.
void ValidateStorage(const std::vector<StorageAccess>& storage, const std::string& list,
                     Findings& findings);

// Rules for spec.pipeline; part of Validate().
void ValidatePipeline(const Spec& spec, Findings& findings);

// Rules for spec.views, and for what spec.pipeline says of them; part of Validate().
void ValidateViews(const Spec& spec, Findings& findings);

// What a job with a mask says of it, and of each operator that moves pixels; part of Validate().
void ValidateMask(const Spec& spec, Findings& findings);

// Names in spec.insight: of rules and thresholds that there are, each once; part of Validate().
void ValidateInsight(const Spec& spec, Findings& findings);

// Rules for one entry, which stands at `path`.
void ValidateOperator(const OperatorSpec& op, const std::string& path, Findings& findings);

}  // namespace hetero::api
