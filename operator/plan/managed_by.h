#pragma once

#include "api/hetero_training_job.h"

namespace hetero::plan {

// Whose the job is, by spec.managedBy or, in its place, runPolicy.managedBy. Only its Workload is
// the operator's where MultiKueue has the rest, and nothing where somebody else has it all.
enum class Manager { kOperator, kMultiKueue, kAnother };

Manager ManagerOf(const api::Spec& spec);

}  // namespace hetero::plan
