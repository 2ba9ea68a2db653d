#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/feed/window.h"
#include "runtime/job/schedule.h"
#include "runtime/job/stream_digest.h"
#include "simulation/process.h"

namespace hetero::feed::simulation {

// One rank: a real Window, and what TicketClient would do with its decisions. Every decision is
// checked against the rules that must always hold; what breaks one is handed to `on_violation`.
class Trainer : public Process {
 public:
  struct Callbacks {
    std::function<void(const Window::Assignment&)> issue;
    std::function<void(const Window::Assignment&)> cancel;
    std::function<void(ProducerId)> reset;
    std::function<void(const std::string&)> on_violation;
  };
  // The size of each batch is its number of samples.
  Trainer(int32_t rank, uint64_t seed, int64_t budget, bool sizes_known, Window::Local local,
          const job::Schedule::Options& schedule, Callbacks callbacks, Timeline* timeline);

  void Apply(const Window::Event& event);
  // A batch that was produced for `ticket` came from `producer`.
  void Receive(ProducerId producer, int64_t ticket, base::Duration work);
  void Fail(ProducerId producer, int64_t ticket);
  // Whether one more failure of `ticket` leaves the job with a chance to end.
  bool MayFail(int64_t ticket) const;

  const Window& window() const { return window_; }
  const job::Schedule& schedule() const { return schedule_; }
  bool CanTake() const { return window_.head_state() == Window::HeadState::kFilled; }
  bool AtEnd() const { return window_.head_state() == Window::HeadState::kEnd; }
  void Take();

  const job::StreamDigest& digest() const { return digest_; }
  int64_t most_bytes() const { return most_bytes_; }

 private:
  void CheckIssue(const Window::Assignment& issue);
  void CheckBounds();
  void Violate(const std::string& what);
  void TraceActions(const Window::Actions& actions);

  const int32_t rank_;
  const uint64_t seed_;
  const int64_t budget_;
  const int64_t samples_;  // of an epoch
  const job::Schedule schedule_;
  const Callbacks callbacks_;
  Timeline* timeline_;
  Window window_;
  std::map<int64_t, int64_t> held_;                // slot -> the ticket whose batch fills it
  std::map<ProducerId, std::set<int64_t>> asked_;  // of each producer, and not answered
  std::map<int64_t, int> failures_;
  int64_t taken_ = 0;
  int64_t bytes_ = 0;
  int64_t most_bytes_ = 0;
  int64_t largest_ = 0;
  job::StreamDigest digest_;
};

// What a sample's bytes would hash to.
uint32_t SampleCrc(int64_t epoch, int64_t sample);

}  // namespace hetero::feed::simulation
