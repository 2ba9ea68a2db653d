#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace hetero::agent {

// Where rank 0's script listens for the others (MASTER_ADDR, MASTER_PORT).
struct MasterAddress {
  std::string host;
  int32_t port = 0;
};

// A port that is free on all addresses now. It is picked, not held: a script that finds it taken
// fails to bind, and the next generation has another. kResourceExhausted when none is.
absl::StatusOr<int32_t> PickPort();

}  // namespace hetero::agent
