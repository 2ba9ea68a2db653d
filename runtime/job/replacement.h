#pragma once

#include <cstdint>

namespace hetero::job {

// Candidate `attempt` (1, 2, ...) to take the place of the bad sample at `slot` of `epoch`:
// keyed_hash(seed, epoch, slot, attempt) mod samples. A function of the slot alone, so every worker
// finds the same replacement. It may name a bad sample again or the one replaced: the caller then
// tries the next attempt.
int64_t Replacement(uint64_t seed, int64_t epoch, int64_t slot, int32_t attempt, int64_t samples);

}  // namespace hetero::job
