#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "runtime/feed/service_times.h"

namespace hetero::feed {

// Whoever can serve tickets: this host's own cores, or a CPU worker (numbered from 1).
using ProducerId = int32_t;
inline constexpr ProducerId kLocalProducer = 0;

// Decides which producer serves which ticket of a rank, and when a ticket is issued again. Pure: no
// clock, no threads, no transport; TicketClient feeds it events and carries out its actions.
// Tickets are numbers in [0, tickets), used in that order; the window covers [head, head +
// capacity).
//
// A ticket goes to the worker expected to finish it first. A worker's outstanding tickets start at
// 2 and grow with its share of the workers' measured rate, up to a second of work. A ticket is
// issued again
//  - at once, when its worker's stream breaks or the worker leaves;
//  - when it blocks the head and its own start is older than ReissueDelay(), or its producer has
//    given no sign of life for as long: that producer is then frozen, all its tickets go elsewhere,
//    and it gets none until it answers again;
//  - elsewhere, when its producer failed; after kMaxFailures the ticket has failed.
// The first arrival fills the slot. Not thread-safe.
class Window {
 public:
  static constexpr int kMaxFailures = 3;
  static constexpr int64_t kFirstCredit = 2;  // tickets outstanding at an unmeasured producer

  struct Options {
    int64_t tickets = 0;
    int64_t capacity = 2;  // >= 1
    bool local = false;    // kLocalProducer serves when no worker can, and as the last resort
    std::function<bool(int64_t)> is_empty;  // tickets that need no producer; absent: none
  };

  struct WorkerAdded {
    ProducerId producer;
  };
  struct WorkerRemoved {
    ProducerId producer;
  };
  struct StreamUp {
    ProducerId producer;
  };
  struct StreamDown {
    ProducerId producer;
  };
  struct Started {
    ProducerId producer;
    int64_t ticket;
  };
  struct Arrived {
    ProducerId producer;
    int64_t ticket;
  };
  struct Failed {
    ProducerId producer;
    int64_t ticket;
    absl::Status error;
  };
  struct Consumed {};  // the head, which must be filled, was taken
  struct CapacityChanged {
    int64_t capacity;
  };
  struct Tick {};  // time passed
  using Event = std::variant<WorkerAdded, WorkerRemoved, StreamUp, StreamDown, Started, Arrived,
                             Failed, Consumed, CapacityChanged, Tick>;

  struct Assignment {
    ProducerId producer = 0;
    int64_t ticket = 0;
    bool operator==(const Assignment&) const = default;
  };
  struct Actions {
    std::vector<Assignment> issue;
    std::vector<Assignment> cancel;  // not started as far as known, and no longer wanted
    bool accepted = false;           // Arrived: the batch fills its slot; otherwise drop it
  };

  explicit Window(Options options);

  Actions Apply(const Event& event, base::Instant now);

  enum class HeadState { kWaiting, kFilled, kFailed, kEnd };
  HeadState head_state() const;
  int64_t head() const { return head_; }
  // Why the head failed; OK unless kFailed.
  absl::Status head_error() const;

  int64_t reissued() const { return reissued_; }      // issues beyond a ticket's first
  int64_t duplicates() const { return duplicates_; }  // arrivals dropped
  int64_t outstanding(ProducerId producer) const;     // 0 for an unknown producer
  bool frozen(ProducerId producer) const;
  base::Duration ReissueDelay() const;

 private:
  struct Slot {
    bool filled = false;
    int issues = 0;
    absl::Status error;
    std::vector<ProducerId> holders;    // producers that have this ticket
    std::vector<ProducerId> failed_on;  // one entry per failure
  };
  struct Outstanding {
    std::optional<base::Instant> started;
    bool overdue = false;
  };
  struct Producer {
    bool up = false;
    bool frozen = false;
    std::map<int64_t, Outstanding> outstanding;
    base::Instant silent_since;  // last sign of life, or when it got work after having none
    base::Instant last_arrival;
    std::optional<double> interval;  // seconds from batch to batch while busy, smoothed
  };

  void Handle(const WorkerAdded& event, base::Instant now, Actions* actions);
  void Handle(const WorkerRemoved& event, base::Instant now, Actions* actions);
  void Handle(const StreamUp& event, base::Instant now, Actions* actions);
  void Handle(const StreamDown& event, base::Instant now, Actions* actions);
  void Handle(const Started& event, base::Instant now, Actions* actions);
  void Handle(const Arrived& event, base::Instant now, Actions* actions);
  void Handle(const Failed& event, base::Instant now, Actions* actions);
  void Handle(const Consumed& event, base::Instant now, Actions* actions);
  void Handle(const CapacityChanged& event, base::Instant now, Actions* actions);
  void Handle(const Tick& event, base::Instant now, Actions* actions);

  Slot* Find(int64_t ticket);
  Producer* FindProducer(ProducerId id);
  void Extend();
  void ReleaseAll(ProducerId id, Producer* producer);
  void NoteSignOfLife(Producer* producer, base::Instant now);
  void Measure(ProducerId id, Producer* producer, const Outstanding& done, base::Instant now);
  void Fill(int64_t ticket, Slot* slot, Actions* actions);
  void JudgeHead(base::Instant now);
  void Assign(base::Instant now, Actions* actions);
  bool IsServed(int64_t ticket, const Slot& slot) const;
  std::optional<ProducerId> Choose(const Slot& slot, bool urgent, base::Instant now) const;
  std::optional<ProducerId> ChooseLastResort(const Slot& slot, bool urgent) const;
  double ExpectedSeconds(const Producer& producer, base::Instant now) const;
  int64_t Credit(const Producer& producer) const;
  void Issue(ProducerId id, int64_t ticket, Slot* slot, base::Instant now, Actions* actions);

  Options options_;
  int64_t head_ = 0;
  std::deque<Slot> slots_;  // slots_[i] belongs to ticket head_ + i
  std::map<ProducerId, Producer> producers_;
  ServiceTimes service_times_;
  int64_t reissued_ = 0;
  int64_t duplicates_ = 0;
};

}  // namespace hetero::feed
