#pragma once

#include <string>

#include "api/hetero_training_job.h"

namespace hetero::local {

// "\nIn the manifest\n  dataset:\n    uri: ...", with what is said of the source and its label; to
// be copied into a job.
std::string DatasetLines(const api::DatasetSource& source, const api::Label& label);

}  // namespace hetero::local
