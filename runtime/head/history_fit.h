#pragma once

#include <cstddef>

#include "hetero/v1/history.pb.h"

namespace hetero::head {

// Leaves out of `history` what makes it longer than `bytes`, the least telling first (see
// history_codec.h). When and how long the job ran always stays. Internal to the codec.
void FitHistory(size_t bytes, v1::History& history);

}  // namespace hetero::head
