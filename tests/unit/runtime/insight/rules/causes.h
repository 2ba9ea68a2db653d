#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/runtime/insight/rules/played_job.h"

namespace hetero::insight {

// Something that goes wrong with a job whose shape and severity a seed draws.
struct Cause {
  std::string name;   // of the test
  std::string rule;   // that has to be found first
  std::string words;  // that its message has
  PlayedJob (*job)(uint64_t seed);
};

const std::vector<Cause>& AllCauses();

}  // namespace hetero::insight
