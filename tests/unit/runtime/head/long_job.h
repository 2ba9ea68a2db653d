#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/head/history_builder.h"
#include "runtime/head/history_codec.h"
#include "runtime/head/report_builder.h"
#include "tests/unit/runtime/head/job_fixture.h"

namespace hetero::head {

// A job that has several heads, one after the other, on machines whose steady clocks know nothing
// of each other. The job is that of job_fixture.h.
class LongJob {
 public:
  explicit LongJob(api::HeteroTrainingJob job = MakeJob()) : job_(std::move(job)) { Begin({}, 1); }

  std::vector<Action> Apply(const Event& event) { return state->Apply(event, Time()); }
  // A heartbeat from every `alive` stream ten times a second.
  void Pass(base::Duration duration, const std::vector<StreamId>& alive = {}) {
    for (const base::Duration until = elapsed + duration; elapsed < until;) {
      elapsed += std::chrono::milliseconds(100);
      for (const StreamId stream : alive) Apply(HeartbeatReceived{stream, {}});
      Apply(Tick{});
    }
  }
  // The four of JoinAll() in job_fixture.h; `generation` is the one they work in.
  void JoinAll(int64_t incarnation = 1, int64_t generation = 0) {
    Join(10, "cpu", 0, incarnation, generation);
    Join(20, "gpu", 0, incarnation, generation);
    Join(21, "gpu", 1, incarnation, generation);
    Join(30, "big", 0, incarnation, generation);
  }
  // A process that has not said yet what it sees of the data.
  std::vector<Action> Greet(StreamId stream, const std::string& role, int local,
                            int64_t incarnation, int64_t generation = 0) {
    v1::Hello hello = MakeHello(role, 0, local, incarnation);
    hello.set_generation(generation);
    hello.set_headless_ns(headless.count());
    hello.mutable_identity()->set_attempt(attempt_);
    return Apply(HelloReceived{stream, hello});
  }
  // A process with its dataset open.
  std::vector<Action> Join(StreamId stream, const std::string& role, int local, int64_t incarnation,
                           int64_t generation = 0) {
    std::vector<Action> actions = Greet(stream, role, local, incarnation, generation);
    for (Action& action : Apply(ReadyReceived{stream, MakeReady(100)})) {
      actions.push_back(std::move(action));
    }
    return actions;
  }
  void Tell(StreamId stream, const v1::Heartbeat& heartbeat) {
    Apply(HeartbeatReceived{stream, heartbeat});
  }

  std::string HistoryText(size_t limit = kMaxHistoryText) const {
    return EncodeHistory(BuildHistory(state->record(), "run", Time()), limit);
  }
  // Another head of the same attempt begins with what this one leaves now.
  void ReplaceHead() { Begin(HistoryText(), attempt_); }
  // The first head of the next attempt begins with what one has left.
  void NextAttempt(const std::string& history) { Begin(history, attempt_ + 1); }

  insight::Report Report() const { return BuildReport(state->record(), Time()); }

  Moment Time() const {
    return {base::Instant(std::chrono::hours(1000 * heads_) + elapsed),
            base::WallTime(std::chrono::seconds(1'700'000'000)) +
                std::chrono::duration_cast<base::WallTime::duration>(elapsed + clock_step)};
  }

  base::Duration elapsed{0};
  base::Duration clock_step{0};  // of the wall clock
  base::Duration headless{0};    // that members tell when they join
  std::unique_ptr<State> state;

 private:
  void Begin(const std::string& text, int32_t attempt) {
    attempt_ = attempt;
    ++heads_;
    v1::History history;
    if (!text.empty()) history = DecodeHistory(text, "run", attempt).value();
    state = std::make_unique<State>(
        State::Options{.job = job_,
                       .job_json = "{}",
                       .created = base::WallTime(std::chrono::seconds(1'700'000'000)),
                       .attempt = {.number = attempt, .began = Time().wall},
                       .history = std::move(history)},
        Time());
  }

  const api::HeteroTrainingJob job_;
  int32_t attempt_ = 1;
  int heads_ = 0;
};

}  // namespace hetero::head
