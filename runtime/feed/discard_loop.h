#pragma once

#include <functional>
#include <stop_token>

#include "absl/status/status.h"
#include "runtime/feed/batch_stream.h"

namespace hetero::feed {

// A rank that only reads its input: takes every batch of the stream, shows it to `on_batch` and
// throws it away. OK after the last batch; otherwise the error of Next() or of `on_batch`, which
// end it.
absl::Status DiscardAll(BatchStream& batches,
                        const std::function<absl::Status(const Batch&)>& on_batch,
                        std::stop_token stop);

}  // namespace hetero::feed
