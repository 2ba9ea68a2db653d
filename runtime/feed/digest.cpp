#include "runtime/feed/digest.h"

namespace hetero::feed {

void AddToDigest(uint64_t seed, const Batch& batch, job::StreamDigest* digest) {
  const Ticket& ticket = batch.ticket;
  if (ticket.split != job::Split::kTrain) return;
  for (int64_t i = 0; i < batch.count(); ++i) {
    const auto at = static_cast<size_t>(i);
    digest->Add(seed, ticket.epoch, ticket.step, ticket.slots.first + i, batch.sample_ids[at],
                batch.crcs[at]);
  }
}

}  // namespace hetero::feed
