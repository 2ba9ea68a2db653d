#pragma once

#include <cstdint>

#include "runtime/feed/wire/batch.h"
#include "runtime/job/stream_digest.h"

namespace hetero::feed {

// Adds every sample of a consumed training batch to `*digest`; batches of validation are no part of
// it.
void AddToDigest(uint64_t seed, const Batch& batch, job::StreamDigest* digest);

}  // namespace hetero::feed
