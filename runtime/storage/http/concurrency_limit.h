#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/mutex.h"

namespace hetero::storage {

// How many requests may be underway at once: a few more while all goes well, half as many when the
// server says that it is too much (AIMD, as TCP does). What it says of requests that began before
// the limit was halved last says nothing of the new limit. Thread-safe.
class ConcurrencyLimit {
 public:
  struct Options {
    int initial = 64;
    int most = 256;  // >= initial
  };
  ConcurrencyLimit() : ConcurrencyLimit(Options()) {}
  explicit ConcurrencyLimit(const Options& options);

  enum class Outcome { kGood, kSlowDown, kOther };

  // A request that is underway. It has to end before the limit does.
  class Slot {
   public:
    Slot(Slot&& other) noexcept : limit_(other.limit_), halvings_(other.halvings_) {
      other.limit_ = nullptr;
    }
    Slot& operator=(Slot&&) = delete;
    ~Slot() { End(Outcome::kOther); }
    // Once; what comes later does nothing.
    void End(Outcome outcome);
    bool ok() const { return limit_ != nullptr; }

   private:
    friend class ConcurrencyLimit;
    Slot(ConcurrencyLimit* limit, int64_t halvings) : limit_(limit), halvings_(halvings) {}
    ConcurrencyLimit* limit_;
    int64_t halvings_;  // before it began
  };

  // Waits for one to be free, at most for `patience` of real time: then !ok().
  Slot Take(base::Duration patience);

  int limit() const;
  int underway() const;

 private:
  void End(int64_t halvings, Outcome outcome);

  const Options options_;
  mutable base::Mutex mutex_;
  base::CondVar freed_;
  double limit_ ABSL_GUARDED_BY(mutex_);
  int underway_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t halvings_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hetero::storage
