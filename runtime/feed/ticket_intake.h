#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/feed/ticket_executor.h"
#include "runtime/feed/ticket_gate.h"

namespace hetero::feed {

// What the streams of a CPU worker's trainers ask for, on its way to the executor: tickets whose
// batches would not fit into the worker's memory wait here (TicketGate). A batch counts as long as
// it lives, so until its transport has sent it; whoever lets go of one is not kept. Thread-safe.
// The executor outlives it; batches may live longer than both.
class TicketIntake {
 public:
  using Handle = TicketGate::Key;

  TicketIntake(TicketExecutor* executor, int64_t most_bytes);
  // What waits is dropped.
  ~TicketIntake();

  // A trainer's stream begins, and ends.
  TicketGate::Owner Join();
  void Part();
  // As TicketExecutor's. What is asked for before waits here.
  void SetProducer(const BatchProducer* producer);
  Handle Submit(TicketGate::Owner owner, const Ticket& ticket, TicketExecutor::Callbacks callbacks);
  bool Cancel(Handle handle);
  void Avoid(const std::vector<FatalSample>& samples) { executor_.Avoid(samples); }

 private:
  class State;

  TicketExecutor& executor_;
  const std::shared_ptr<State> state_;
  std::jthread later_;  // takes up what waited for memory that batches have left
};

}  // namespace hetero::feed
