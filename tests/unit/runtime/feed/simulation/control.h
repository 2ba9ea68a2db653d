#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/head/state.h"
#include "simulation/timeline.h"

namespace hetero::feed::simulation {

// A CPU worker as the head's roster names it.
struct RosterEntry {
  int32_t worker = 0;
  int64_t incarnation = 0;
  bool leaving = false;
};
using Roster = std::vector<RosterEntry>;

// The head of a simulated job, a real head::State, and every member's connection to it. Where one
// head has died, the next begins with what it left, and the members that live come back to it.
// Members are numbered: ranks from 0, CPU workers behind them.
class Control {
 public:
  struct Options {
    int32_t ranks = 1;
    int32_t workers = 1;  // of a number that the job may grow to
  };
  // Of ranks: what the head has said has arrived there, in order.
  struct Callbacks {
    std::function<void(int32_t rank, std::shared_ptr<const Roster>)> on_roster;
    std::function<void(int32_t rank, int64_t generation, std::shared_ptr<const Roster>)>
        on_generation;
    std::function<int64_t()> steps;  // that the job has done
    std::function<void(const std::string&)> on_violation;
  };
  Control(Options options, Callbacks callbacks, Timeline* timeline, Dice* dice);

  int32_t Worker(size_t index) const { return options_.ranks + static_cast<int32_t>(index); }
  // A process begins, later ones with larger incarnations; its dataset is open.
  void Start(int32_t member, int64_t incarnation);
  // The process is gone: the head finds its connection closed.
  void Die(int32_t member);
  // A CPU worker says its last word, and is gone.
  void Leave(int32_t worker);
  // It says nothing and hears nothing until then.
  void Silence(int32_t member, base::Instant until);
  // Its machine is about to go, or stays after all.
  void Warn(int32_t worker, bool leaving);
  // The process group of `generation` broke, says this rank.
  void ReportBroken(int32_t rank, int64_t generation);
  // The head dies; after `time` another takes its place.
  void LoseHead(base::Duration time);
  bool has_head() const { return state_ != nullptr; }
  int64_t heads() const { return heads_; }

 private:
  struct Member {
    int64_t incarnation = 0;    // 0: there is no process
    head::StreamId stream = 0;  // 0: not connected
    int64_t generation = 0;
    int64_t broken = 0;
    int64_t first_step = 0;
    int64_t welcomed_by = 0;
    base::Instant silent_until;
    base::Instant last_arrival;  // a stream keeps its order
    bool dial_due = false;
  };

  bool IsRank(int32_t member) const { return member < options_.ranks; }
  v1::Hello HelloOf(int32_t member) const;
  head::Moment Now() const;
  v1::Notices NoticesOf() const;
  void BeginHead();
  void DialLater(int32_t member);
  void Dial(int32_t member);
  void TickHead();
  void Beat();
  void Tell(const head::Event& event);
  void CarryOut(const std::vector<head::Action>& actions);
  void Carry(const head::Send& send);
  void Carry(const head::OpenGeneration& open);
  void Carry(const head::BroadcastRoster& broadcast);
  void Carry(const head::Refuse& refuse);
  void Carry(const head::CloseStream& close);
  void Carry(const head::Note& note);
  void Carry(const head::EndJob& end);
  void Carry(const head::StepDown& step_down);
  void Deliver(head::StreamId stream, std::function<void(int32_t rank)> arrive);
  void DeliverGeneration(head::StreamId stream, int64_t number,
                         std::shared_ptr<const Roster> roster);

  const Options options_;
  const Callbacks callbacks_;
  Timeline* timeline_;
  Dice* dice_;
  std::vector<Member> members_;
  std::map<head::StreamId, int32_t> streams_;
  head::StreamId next_stream_ = 1;
  std::map<int32_t, int64_t> warned_;   // incarnations of workers, by index
  std::unique_ptr<head::State> state_;  // null: there is no head
  v1::History history_;                 // of the heads before
  int64_t heads_ = 0;
  size_t next_to_beat_ = 0;
  std::string last_warning_;
};

}  // namespace hetero::feed::simulation
