#pragma once

#include <string>
#include <vector>

#include "api/hetero_training_job.h"

namespace hetero::testing {

// A small valid job over synthetic 16x16 pictures with an mlp; `overrides` as in --set. Aborts the
// test program when they make it invalid.
api::HeteroTrainingJob SmallJob(const std::vector<std::string>& overrides = {});

// Its manifest, for the programs.
std::string SmallJobYaml();

}  // namespace hetero::testing
