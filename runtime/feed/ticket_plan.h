#pragma once

#include <cstdint>

#include "runtime/feed/wire/ticket.h"
#include "runtime/job/schedule.h"

namespace hetero::feed {

// The tickets of one rank: its Schedule, from some batch on, under one generation. Immutable, safe
// from any thread.
class TicketPlan {
 public:
  // Ticket 0 is batch `first` of `schedule`, which outlives the plan.
  TicketPlan(const job::Schedule* schedule, int64_t generation, int32_t rank, int64_t first = 0)
      : schedule_(*schedule), generation_(generation), rank_(rank), first_(first) {}

  int64_t size() const { return schedule_.size() - first_; }
  // The ticket with this id, in [0, size()).
  Ticket At(int64_t id) const;
  // Samples of the largest batch; 0 for an empty plan.
  int64_t largest_count() const;

 private:
  const job::Schedule& schedule_;
  int64_t generation_;
  int32_t rank_;
  int64_t first_;
};

}  // namespace hetero::feed
