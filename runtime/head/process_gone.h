#pragma once

#include <cstdint>

namespace hetero::head {

// True when this machine has no running process `pid` (a zombie does not run). False for pid 0 and
// when it cannot be told.
bool ProcessGone(int64_t pid);

}  // namespace hetero::head
