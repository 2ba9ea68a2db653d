#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "runtime/interpreter/interpreters.h"

namespace hetero::process {

// Who calls the Python operators of a job, by python3 of PATH, which sees none of this
// process's secrets and uses one core for each picture. Modules are looked for in `folders`,
// too, of which some may be empty. Null where there are no such operators. Errors as
// interpreter::InterpreterHost::Start().
absl::StatusOr<std::unique_ptr<interpreter::Interpreters>> StartPython(
    const api::Spec& spec, const std::vector<std::string>& folders = {},
    const std::stop_token& stop = {});

}  // namespace hetero::process
