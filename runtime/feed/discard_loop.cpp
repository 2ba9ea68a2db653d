#include "runtime/feed/discard_loop.h"

#include <memory>

#include "base/status_macros.h"

namespace hetero::feed {

absl::Status DiscardAll(BatchStream& batches,
                        const std::function<absl::Status(const Batch&)>& on_batch,
                        std::stop_token stop) {
  while (true) {
    const absl::StatusOr<std::unique_ptr<Batch>> batch = batches.Next(stop);
    if (absl::IsOutOfRange(batch.status())) return absl::OkStatus();
    HETERO_RETURN_IF_ERROR(batch.status());
    HETERO_RETURN_IF_ERROR(on_batch(**batch));
  }
}

}  // namespace hetero::feed
