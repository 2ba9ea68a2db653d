#pragma once

#include <atomic>
#include <stop_token>

#include "runtime/train/leave_wish.h"

namespace hetero::train {

// What may end a rank's part in its generation from outside.
struct Interrupts {
  std::stop_token stop;  // the job is to stop
  std::stop_token over;  // a newer generation has opened
  // Ends a wait for a batch: on one of these two, and when `leave` insists.
  std::stop_token wait;
  const LeaveWish* leave = nullptr;  // null: this rank leaves only with all others
  // Set by who wants rank 0 to write a checkpoint after the step under way, and taken back by it;
  // null: nobody asks.
  std::atomic<bool>* save = nullptr;
};

}  // namespace hetero::train
