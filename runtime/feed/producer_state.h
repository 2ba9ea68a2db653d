#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/clock.h"
#include "runtime/feed/rate_meter.h"

namespace hetero::feed {

// Whoever can serve tickets: this host's own cores, or a CPU worker (numbered from 1).
using ProducerId = int32_t;
inline constexpr ProducerId kLocalProducer = 0;

// What a trainer's Window knows of one producer: the tickets it has, and how fast it is. Pure; not
// thread-safe.
class ProducerState {
 public:
  static constexpr int64_t kFirstCredit = 2;    // tickets outstanding while it is unmeasured
  static constexpr int64_t kLeftWithOwner = 2;  // tickets that nobody takes from it, at least
  static constexpr int kMostFailures = 3;       // in a row, before its quarantine
  static constexpr base::Duration kFirstQuarantine = std::chrono::seconds(1);  // doubles each time
  static constexpr base::Duration kLongestQuarantine = std::chrono::seconds(60);

  struct Outstanding {
    int64_t sequence = 0;  // of issue at this producer
    base::Instant issued;
    std::optional<base::Instant> started;
    std::optional<base::Instant> passed_over;  // found: a ticket issued later was begun before it
    bool overdue = false;
  };

  bool up() const { return up_; }
  bool frozen() const { return frozen_; }
  bool usable() const { return up_ && !frozen_ && !quarantined(); }
  // Its machine is about to go.
  bool leaving() const { return leaving_; }
  void set_leaving(bool leaving) { leaving_ = leaving; }
  // Too many tickets in a row have failed there: it gets none until its time is over, and then one
  // at a time, on trial, until a batch has come. A connection that breaks changes nothing.
  bool quarantined() const { return quarantined_until_.has_value(); }
  bool on_trial() const { return on_trial_; }
  const std::map<int64_t, Outstanding>& outstanding() const { return outstanding_; }
  int64_t count() const { return static_cast<int64_t>(outstanding_.size()); }
  bool Has(int64_t ticket) const { return outstanding_.contains(ticket); }
  bool HasBegun(int64_t ticket) const;
  // It has; or it has begun none as far as known, and this would be its first: one that ends at
  // once takes the word that it has begun with it.
  bool MayHaveBegun(int64_t ticket) const;
  // The ticket that it would begin last, if it has one that it has not begun as far as known.
  std::optional<int64_t> LastNotBegun() const;
  // How many of its tickets it is likely to have begun, as far as answers to tickets that had been
  // taken away from it tell: those that nobody should take.
  int64_t left_with_owner() const { return static_cast<int64_t>(left_with_owner_); }
  // Seconds per ticket while busy; absent while unmeasured.
  std::optional<double> interval() const { return meter_.seconds_per_ticket(); }
  int64_t arrived() const { return arrived_; }

  void SetUp(base::Instant now);
  // Its tickets are gone.
  void SetDown();
  void Issue(int64_t ticket, base::Instant now);
  // Takes a ticket away that is no longer wanted from it.
  void Withdraw(int64_t ticket);
  // Signs of life. A ticket that it does not have is a late answer, and only that.
  void Started(int64_t ticket, base::Instant now);
  // The time from start to arrival; absent when the start was never seen or a freeze lay between.
  std::optional<base::Duration> Arrived(int64_t ticket, base::Duration work, base::Instant now);
  // Whether its quarantine begins with this.
  bool Failed(int64_t ticket, base::Instant now);
  // Ends a quarantine whose time is over.
  void JudgeQuarantine(base::Instant now);

  // Whether `ticket`, which this producer has, is late by `delay`: measured from its own start, or
  // from when it was first judged while the producer had begun a later one.
  bool JudgeOverdue(int64_t ticket, base::Duration delay, base::Instant now);
  // Whether the producer, which has tickets, has been silent long enough that it must be
  // frozen: `delay`, or three times as long as it usually takes between two signs.
  bool JudgeFrozen(base::Duration delay, base::Instant now);

  // How long its oldest ticket has been overdue, or it has been silent with it, whichever is more;
  // 0 without tickets.
  base::Duration LongestDebt(base::Instant now);

  // When a further ticket would be done, in seconds from now; 0 while unmeasured. A producer that
  // has slowed down shows it by its silence before it shows it by an arrival.
  double ExpectedSeconds(base::Instant now) const;
  // How many tickets it may have, given the window's capacity and the rates of all producers
  // together [1/s].
  int64_t Credit(int64_t capacity, double all_rates) const;

 private:
  void NoteSignOfLife(base::Instant now);
  // Since when it owes `waiting`, counted from its start or from being passed over.
  std::optional<base::Instant> DueSince(Outstanding* waiting, base::Instant now) const;

  bool up_ = false;
  bool leaving_ = false;
  bool frozen_ = false;
  bool on_probation_ = false;  // was frozen, and has not been measured since
  int failures_ = 0;           // since its latest batch
  std::optional<base::Instant> quarantined_until_;
  base::Duration next_quarantine_ = kFirstQuarantine;
  bool on_trial_ = false;
  std::map<int64_t, Outstanding> outstanding_;
  int64_t next_sequence_ = 0;
  int64_t latest_begun_ = -1;   // sequence
  int64_t thaw_sequence_ = 0;   // tickets issued before it was found alive again tell nothing
  base::Instant silent_since_;  // last sign of life, or when it got work after having none
  double usual_silence_ = 0;    // seconds between two signs of life; the longest of late
  double left_with_owner_ = kLeftWithOwner;
  RateMeter meter_;
  int64_t arrived_ = 0;
};

}  // namespace hetero::feed
