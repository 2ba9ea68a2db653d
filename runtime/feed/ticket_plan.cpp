#include "runtime/feed/ticket_plan.h"

namespace hetero::feed {

Ticket TicketPlan::At(int64_t id) const {
  const job::PlannedBatch batch = schedule_.At(first_ + id);
  return Ticket{.id = id,
                .generation = generation_,
                .rank = rank_,
                .split = batch.split,
                .epoch = batch.epoch,
                .step = batch.step,
                .slots = batch.slots};
}

int64_t TicketPlan::largest_count() const {
  // Every epoch and every evaluation starts with its fullest batch, of the same size.
  return schedule_.size() > 0 ? schedule_.At(0).slots.count : 0;
}

}  // namespace hetero::feed
