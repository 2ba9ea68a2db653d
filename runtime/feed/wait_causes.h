#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/clock.h"
#include "runtime/feed/producer_state.h"

namespace hetero::feed {

// Why a rank waited for batches, in seconds since the start. They sum to the time waited.
struct WaitCauses {
  double no_worker = 0;  // no CPU worker was connected
  double workers = 0;    // the batch was still queued or in work: the workers are too slow
  double transfer = 0;   // produced, and on its way
  double handover = 0;   // arrived, and the training thread was not awake yet
  double total() const { return no_worker + workers + transfer + handover; }
  void Add(const WaitCauses& other) {
    no_worker += other.no_worker;
    workers += other.workers;
    transfer += other.transfer;
    handover += other.handover;
  }
};

// Notes what happens to tickets, and from that splits each wait by its cause. All moments are the
// trainer's: a batch counts as produced when its worker's working time has passed since the worker
// said that it began. Not thread-safe.
class WaitJournal {
 public:
  explicit WaitJournal(base::Instant now) : down_since_(now) {}

  // How many CPU workers are connected from now on.
  void OnWorkers(int64_t connected, base::Instant now);
  void OnStarted(ProducerId producer, int64_t ticket, base::Instant now);
  // The batch that fills the ticket's place in the window.
  void OnArrived(ProducerId producer, int64_t ticket, double work_seconds, base::Instant now);

  // The trainer begins to wait for the oldest ticket.
  void OnWaitBegan(base::Instant now);
  // It has it. Everything known of tickets up to this one is forgotten.
  WaitCauses OnWaitEnded(int64_t ticket, base::Instant now);
  // Of the wait that goes on now; 0 without one.
  double WaitingSeconds(base::Instant now) const {
    return waiting_ ? base::ToSeconds(now - wait_began_) : 0;
  }
  // The same for a ticket that did not have to be waited for.
  void Forget(int64_t ticket);

 private:
  struct Arrival {
    base::Instant produced;
    base::Instant arrived;
  };
  base::Duration DownUntil(base::Instant now) const;

  std::map<std::pair<int64_t, ProducerId>, base::Instant> started_;
  std::map<int64_t, Arrival> arrivals_;
  base::Duration down_{0};                   // without a worker, up to down_since_
  std::optional<base::Instant> down_since_;  // absent while workers are connected
  bool waiting_ = false;
  base::Instant wait_began_{};
  base::Duration down_at_begin_{0};
};

}  // namespace hetero::feed
