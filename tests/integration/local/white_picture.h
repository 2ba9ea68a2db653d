#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/integration/support/program_run.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {

// A local job without CPU workers over pictures of 8 x 8 grey pixels, one of which is white.
struct WhitePictureJob {
  std::string pipeline = "[{op: Normalize}]";
  std::string model = "{name: mlp}";
  int ranks = 1;
  int64_t samples = 96;
  int64_t batch = 8;  // of all ranks together
  int64_t slot = 37;  // of the only epoch, where it is

  int64_t white() const;  // its id
};

struct WhitePictureOutcome {
  ProgramResult result;
  nlohmann::json report;
};

WhitePictureOutcome RunToTheEnd(const WhitePictureJob& job);

}  // namespace hetero::testing
