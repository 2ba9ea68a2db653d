#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "runtime/feed/producer_state.h"
#include "runtime/feed/service_times.h"

namespace hetero::feed {

// Decides which producer serves which ticket of a rank, and when a ticket is issued again. Pure: no
// clock, no threads, no transport; TicketClient feeds it events and carries out its actions.
// Tickets are numbers in [0, tickets), used in that order; the window covers [head, head +
// capacity), where the capacity is what the byte budget holds of the largest batch seen.
//
// A ticket goes to the producer expected to finish it first; of several the one that comes first
// from where this rank begins to look, so that ranks do not all ask the same ones. A producer's
// outstanding tickets start at 2 and grow with its share of the measured rates, up to a second of
// work. A producer without work takes tickets that another has not begun, the last ones first, when
// it will be done with them sooner. A ticket is issued again
//  - at once, when its worker's stream breaks or the worker leaves;
//  - when it blocks the head and its own start is older than ReissueDelay(), or its producer has
//    given no sign of life for as long: that producer is then frozen, all its tickets go elsewhere,
//    and it gets none until it answers again;
//  - elsewhere, when its producer failed. A producer where several tickets in a row have failed is
//    put into quarantine (ProducerState): one that fails fast would otherwise be the first to be
//    asked. A ticket has failed when kMaxFailures producers that deliver others have failed it, or
//    everybody who could be asked has, and this host's own cores, where they may serve, as well.
// A worker that is about to go gives back what it has not begun, and gets no more unless all who
// serve are about to go.
//
// A ticket is charged with the end of each worker that had begun it, as far as known or as is
// likely (ProducerState::MayHaveBegun), and with each producer that had no memory for it. A worker
// that is late with it may end of it yet, and counts like a charge until it answers. After
// kMostUnguarded of them it is issued guarded: its samples are then produced in child processes,
// and what ends those is found. This host's own cores never serve a charged ticket otherwise, nor
// one that a process before this one may have ended of (Options::suspect): where only own cores
// serve, nobody is left to charge a ticket. A worker that was only out of reach takes its charge
// back when it is there again. A worker that lives but has owed a ticket for kPatience while the
// head waits is reset: whatever it lost, it is asked again. The patience doubles with each reset
// until a batch arrives, so a slow job is not kept from its end. The first arrival fills the place.
// Not thread-safe.
class Window {
 public:
  static constexpr int kMaxFailures = 3;
  static constexpr int kMostFailures = 16;  // of one ticket, whoever failed it
  static constexpr int kMostUnguarded = 1;  // charges; a second one is suspicious
  static constexpr int kMostCharges = 10;   // that count, of a ticket that has not failed
  static constexpr int64_t kFirstCredit = ProducerState::kFirstCredit;
  static constexpr int64_t kMinCapacity = 2;
  static constexpr base::Duration kPatience = std::chrono::seconds(30);

  // What this host's own cores do (kLocalProducer).
  enum class Local {
    kOff,
    kLastResort,  // serve when no worker can, and tickets that every worker failed
    kShares,      // serve like a worker, by their measured rate
  };

  struct Options {
    int64_t tickets = 0;
    int64_t byte_budget = 0;
    int64_t max_capacity = 1024;  // tickets, however small their batches
    int64_t batch_bytes = 0;      // of the largest batch; 0: unknown, the window is kMinCapacity
    Local local = Local::kOff;
    std::function<bool(int64_t)> is_empty;  // tickets that need no producer; absent: none
    // The ticket that a process which ended before this one may have come to; it may be negative.
    // One of the window from there on may have ended it. Absent: there was none.
    std::optional<int64_t> suspect;
    double start = 0;  // StartOf()
  };
  // Where among the workers a rank begins to look, in [0, 1): however many ranks there are, those
  // of them are far from each other (the golden ratio's sequence, Knuth, TAOCP 3, 6.4).
  static double StartOf(int32_t rank);

  struct WorkerAdded {
    ProducerId producer;
  };
  struct WorkerRemoved {
    ProducerId producer;
  };
  struct WorkerTurned {
    ProducerId producer;
    bool leaving;  // its machine is about to go
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
    int64_t bytes = 0;
    base::Duration work{};  // what the producer says it took
    bool fatal = false;     // with a sample that ends processes
  };
  struct Failed {
    ProducerId producer;
    int64_t ticket;
    absl::Status error;
  };
  struct Consumed {};  // the head, which must be filled, was taken
  struct LocalChanged {
    Local local;  // kOff only if it always was
  };
  struct Tick {};  // time passed
  using Event = std::variant<WorkerAdded, WorkerRemoved, WorkerTurned, StreamUp, StreamDown,
                             Started, Arrived, Failed, Consumed, LocalChanged, Tick>;

  struct Assignment {
    ProducerId producer = 0;
    int64_t ticket = 0;
    bool guarded = false;  // to be produced in child processes; of issues
    bool operator==(const Assignment&) const = default;
  };
  // To be carried out in this order: cancel, then issue.
  struct Actions {
    std::vector<Assignment> cancel;  // not started as far as known, and no longer wanted
    std::vector<Assignment> issue;
    // Workers whose streams are to be broken and dialled again; for the window they are down.
    std::vector<ProducerId> reset;
    // Why a worker's quarantine begins, and whose is over because a batch has come. Only the first
    // quarantine of several with no batch between them is told.
    struct Quarantine {
      ProducerId producer = 0;
      absl::Status error;
    };
    std::vector<Quarantine> quarantined;
    std::vector<ProducerId> recovered;
    bool accepted = false;  // Arrived: the batch fills its place; otherwise drop it
  };

  explicit Window(Options options);

  Actions Apply(const Event& event, base::Instant now);

  enum class HeadState { kWaiting, kFilled, kFailed, kEnd };
  HeadState head_state() const;
  int64_t head() const { return head_; }
  // Why the head failed; OK unless kFailed.
  absl::Status head_error() const;
  int64_t capacity() const;
  // Tickets from there on have been issued to nobody.
  int64_t end() const { return head_ + static_cast<int64_t>(places_.size()); }

  int64_t reissued() const { return reissued_; }      // issues after a fault, beyond the first
  int64_t moved() const { return moved_; }            // taken from a busy producer by an idle one
  int64_t duplicates() const { return duplicates_; }  // arrivals dropped
  int64_t outstanding(ProducerId producer) const;     // 0 for an unknown producer
  bool frozen(ProducerId producer) const;
  const std::map<ProducerId, ProducerState>& producers() const { return producers_; }
  base::Duration ReissueDelay() const;
  double worker_rate() const;         // tickets per second of all connected workers, measured
  int64_t connected_workers() const;  // without this host's own cores
  // The head blocks, and the own cores have had it for longer than ReissueDelay().
  bool waits_for_late_local() const;

 private:
  struct Place {
    bool filled = false;
    absl::Status error;
    std::vector<ProducerId> holders;  // producers that have this ticket
    struct Failure {
      ProducerId producer;
      int64_t arrived;  // batches that had come from it until then
    };
    std::vector<Failure> failures;
    bool FailedOn(ProducerId id) const;
    // Workers that are gone since they began it. Those that had it when another one went may all
    // be gone for one cause, such as a cut network: then only the first counts against the ticket.
    struct End {
      ProducerId producer;
      bool counts;
    };
    std::vector<End> ended;
    std::vector<ProducerId> with_last_end;  // had it when the last one went that counts
    int starved = 0;                        // producers that had no memory for it
    int charges() const { return static_cast<int>(ended.size()) + starved; }
    int counted_charges() const;
    void AddEnd(ProducerId id);
    // A producer took too long with one of its samples, maybe in a child process where the threads
    // do not exist that an operator waits for: one worker then gets it unguarded.
    bool took_too_long = false;
    std::optional<ProducerId> unguarded_for_that;
    bool MayTryUnguarded() const;
  };

  void Handle(const WorkerAdded& event, base::Instant now, Actions* actions);
  void Handle(const WorkerRemoved& event, base::Instant now, Actions* actions);
  void Handle(const WorkerTurned& event, base::Instant now, Actions* actions);
  void Handle(const StreamUp& event, base::Instant now, Actions* actions);
  void Handle(const StreamDown& event, base::Instant now, Actions* actions);
  void Handle(const Started& event, base::Instant now, Actions* actions);
  void Handle(const Arrived& event, base::Instant now, Actions* actions);
  void Handle(const Failed& event, base::Instant now, Actions* actions);
  void Handle(const Consumed& event, base::Instant now, Actions* actions);
  void Handle(const LocalChanged& event, base::Instant now, Actions* actions);
  void Handle(const Tick& event, base::Instant now, Actions* actions);

  Place* Find(int64_t ticket);
  ProducerState* FindProducer(ProducerId id);
  void Extend();
  // `gone`: its process may have ended.
  void ReleaseAll(ProducerId id, const ProducerState& producer, bool gone, Actions* actions);
  void CallBackFromLocal(int64_t ticket, Place* place, Actions* actions);
  bool Guarded(int64_t ticket, const Place& place, ProducerId id) const;
  // Workers that may have begun it and are late with it: they may end of it yet.
  int LateHolders(int64_t ticket, const Place& place) const;
  bool HasFailed(int64_t ticket, const Place& place) const;
  void Quarantine(ProducerId id, ProducerState* producer, const absl::Status& error,
                  Actions* actions);
  // What `producer` has not begun is to be served by others.
  void TakeBack(ProducerId id, ProducerState* producer, Actions* actions);
  void Fill(int64_t ticket, Place* place, Actions* actions);
  void JudgeHead(base::Instant now);
  void ResetDebtors(base::Instant now, Actions* actions);

  // Assignment (window_assign.cpp).
  void Assign(base::Instant now, Actions* actions);
  void AssignStranded(base::Instant now, Actions* actions);
  bool AssignFresh(base::Instant now, Actions* actions);
  bool HasEnough(const ProducerState& producer) const;
  void FeedIdle(base::Instant now, Actions* actions);
  class Owners;
  bool IsServed(int64_t ticket, const Place& place) const;
  bool Serves(ProducerId id, const ProducerState& producer) const;
  bool SomebodyStays() const;
  // After each change of who there is. By their places and not their numbers, most of which may
  // belong to workers that are gone.
  void FindFirstToAsk();
  std::optional<ProducerId> Choose(const Place& place, bool urgent, base::Instant now) const;
  bool LocalMayTry(const Place& place) const;
  std::optional<ProducerId> ChooseLastResort(const Place& place, bool urgent) const;
  int64_t Credit(const ProducerState& producer) const;
  double AllRates() const;
  void Issue(ProducerId id, int64_t ticket, Place* place, base::Instant now, Actions* actions);

  Options options_;
  int64_t head_ = 0;
  std::deque<Place> places_;  // places_[i] belongs to ticket head_ + i
  int64_t next_fresh_ = 0;    // no ticket from here on was ever issued
  // Issued tickets that may have nobody serving them any more.
  std::set<int64_t> stranded_;
  std::map<ProducerId, ProducerState> producers_;
  std::map<ProducerId, ProducerState>::const_iterator first_to_ask_;
  std::set<ProducerId> told_quarantined_;
  // Tickets per second of the producers that serve, while assigning; not known until asked for.
  mutable std::optional<double> all_rates_;
  bool leavers_serve_ = false;  // nobody else does; while assigning
  ServiceTimes service_times_;
  base::Duration patience_ = kPatience;
  bool met_fatal_ = false;  // a sample of this job ends processes: a first charge is suspicious
  // Own cores took too long with a ticket of which nobody has ended: no other is guarded for a
  // process before this one.
  bool suspects_take_too_long_ = false;
  int64_t reissued_ = 0;
  int64_t moved_ = 0;
  int64_t duplicates_ = 0;
};

}  // namespace hetero::feed
