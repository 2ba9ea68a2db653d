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

// One rank's stream: a real Window, and what TicketClient would do with its decisions. Every
// decision is checked against the rules that must always hold; what breaks one is handed to
// `on_violation`.
class Trainer : public Process {
 public:
  struct Callbacks {
    std::function<void(const Window::Assignment&)> issue;
    std::function<void(const Window::Assignment&)> cancel;
    std::function<void(ProducerId)> reset;
    std::function<void(const std::string&)> on_violation;
  };
  struct Options {
    int32_t rank = 0;
    uint64_t seed = 0;
    int64_t first = 0;   // step that ticket 0 is for
    int64_t budget = 0;  // samples: the size of each batch is its number of samples
    bool sizes_known = true;
    Window::Local local = Window::Local::kOff;
    job::Schedule::Options schedule;
  };
  Trainer(const Options& options, Callbacks callbacks, Timeline* timeline);

  void Apply(const Window::Event& event);
  // A batch that was produced for `ticket` came from `producer`.
  void Receive(ProducerId producer, int64_t ticket, base::Duration work);
  void Fail(ProducerId producer, int64_t ticket);
  // Whether one more failure of `ticket` leaves the job with a chance to end.
  bool MayFail(int64_t ticket) const;

  // Its stream is closed: nothing reaches it any more.
  void Retire() { retired_ = true; }
  bool retired() const { return retired_; }

  const Window& window() const { return window_; }
  int64_t step() const { return options_.first + window_.head(); }  // of the batch to be taken next
  bool CanTake() const { return window_.head_state() == Window::HeadState::kFilled; }
  bool AtEnd() const { return window_.head_state() == Window::HeadState::kEnd; }
  void Take();
  // The step of what was taken is done.
  void Commit();

  const job::StreamDigest& digest() const { return digest_; }  // of what is done
  int64_t most_bytes() const { return most_bytes_; }

 private:
  void CheckIssue(const Window::Assignment& issue);
  void CheckBounds();
  void Violate(const std::string& what);
  void TraceActions(const Window::Actions& actions);

  job::PlannedBatch PlanOf(int64_t ticket) const { return schedule_.At(options_.first + ticket); }

  const Options options_;
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
  bool retired_ = false;
  job::StreamDigest digest_, taken_digest_;
};

// What a sample's bytes would hash to.
uint32_t SampleCrc(int64_t epoch, int64_t sample);

}  // namespace hetero::feed::simulation
