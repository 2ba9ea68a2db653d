#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/feed/ticket_executor.h"
#include "runtime/feed/ticket_gate.h"

namespace hetero::feed {

// What the streams of a CPU worker's trainers ask for, on its way to the executor: tickets whose
// batches would not fit into the worker's memory wait here (TicketGate). A batch counts as long as
// it lives, so until its transport has sent it. Thread-safe. The executor outlives it; batches may
// live longer than both.
class TicketIntake {
 public:
  using Handle = TicketGate::Key;

  TicketIntake(TicketExecutor* executor, int64_t most_bytes);
  // What waits is dropped.
  ~TicketIntake();

  TicketGate::Owner NewOwner() { return next_owner_++; }
  // As TicketExecutor's. What is asked for before waits here.
  void SetProducer(const BatchProducer* producer);
  Handle Submit(TicketGate::Owner owner, const Ticket& ticket, TicketExecutor::Callbacks callbacks);
  bool Cancel(Handle handle);
  void Avoid(const std::vector<FatalSample>& samples) { executor_.Avoid(samples); }

 private:
  class State;

  TicketExecutor& executor_;
  std::atomic<TicketGate::Owner> next_owner_ = 1;
  const std::shared_ptr<State> state_;
};

}  // namespace hetero::feed
