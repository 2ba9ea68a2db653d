#pragma once

#include <cstdint>

#include "runtime/job/schedule.h"

namespace hetero::feed {

// A request for one batch. The trainer that needs the batch owns the ticket; a CPU worker can serve
// it from the ticket and the job alone.
struct Ticket {
  int64_t id = 0;  // position in the rank's Schedule: unique per rank, ascending in order of use
  int64_t generation = 0;
  int32_t rank = 0;
  job::Split split = job::Split::kTrain;
  int64_t epoch = 0;
  int64_t step = 0;
  job::SlotRange slots;
  // Entries at the end of the pipeline's uint8 part that the worker leaves to the trainer.
  int32_t left_to_trainer = 0;
  // Processes that had begun it have ended: its samples are produced in child processes.
  bool guarded = false;
  bool operator==(const Ticket&) const = default;
};

}  // namespace hetero::feed
