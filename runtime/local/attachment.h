#pragma once

#include <string>

#include "api/hetero_training_job.h"

// A job around a script that somebody else has started: `hetero-runtime local --attach`.
namespace hetero::local {

// `job` with a single rank, which is the script that attaches; it may have GPUs of its own.
api::HeteroTrainingJob ForOneRank(api::HeteroTrainingJob job);

// Whether `line`, which an agent printed, says where the stream of its rank can be connected to.
bool NamesTheStream(const std::string& line);

// Whether nobody can write to `input` (a file descriptor) any more. What was written is passed
// over. Never blocks.
bool InputEnded(int input);

}  // namespace hetero::local
