#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "api/hetero_training_job.h"
#include "api/manifest.h"

namespace hetero::local {

// What can be known to be wrong before any process starts: fields that this version cannot honour,
// more GPUs than the `usable_gpus` (gpus.h), a dataset or pipeline that does not open, a global
// batch larger than the dataset. Reads only headers and folders. Every problem is reported, with
// its field.
std::vector<api::FieldError> CheckLocalJob(const api::HeteroTrainingJob& job, bool input_only,
                                           const std::vector<std::string>& usable_gpus);

// Where the scripts of `job` run: the manifest's folder, or script.workingDirectory, seen from
// there.
std::string WorkingDirectory(const api::HeteroTrainingJob& job, const std::string& manifest);

// Why the functions of Python operators cannot be had on this machine. Modules are looked for in
// `folders`, too.
std::vector<api::FieldError> CheckPython(const api::HeteroTrainingJob& job,
                                         const std::vector<std::string>& folders,
                                         const std::stop_token& stop);

// What of `script` is not there on this machine, when it runs in `folder`.
std::vector<api::FieldError> CheckScript(const api::Script& script, const std::string& folder);

// kNotFound names the program and says how to get or name it.
absl::Status CheckProgram(const std::string& path, const std::string& remedy);

}  // namespace hetero::local
