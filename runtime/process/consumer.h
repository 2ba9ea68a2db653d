#pragma once

#include <stop_token>

#include "absl/status/status.h"
#include "base/clock.h"
#include "runtime/process/rank_session.h"

namespace hetero::process {

// `--input-only`: a rank that takes every batch of its schedule and throws it away. Measures the
// data path alone, to size the CPU tier.
absl::Status RunConsumer(RankSession::Options options, base::Clock& clock, std::stop_token stop);

}  // namespace hetero::process
