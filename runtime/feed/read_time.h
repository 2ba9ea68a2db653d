#pragma once

#include "base/clock.h"

namespace hetero::feed {

// How long the calling thread has waited for samples to be read, since it began.
inline base::Duration& ThreadReadTime() {
  thread_local base::Duration time{0};
  return time;
}

// Adds its own life to it.
class ReadTimer {
 public:
  explicit ReadTimer(const base::Clock& clock) : clock_(clock), begin_(clock.Now()) {}
  ~ReadTimer() { ThreadReadTime() += clock_.Now() - begin_; }
  ReadTimer(const ReadTimer&) = delete;
  ReadTimer& operator=(const ReadTimer&) = delete;

 private:
  const base::Clock& clock_;
  const base::Instant begin_;
};

// How long the calling thread works, and how much of it it waits so, from the construction on.
class WorkTimer {
 public:
  explicit WorkTimer(const base::Clock& clock)
      : clock_(clock), begin_(clock.Now()), read_(ThreadReadTime()) {}
  void AddTo(base::Duration* worked, base::Duration* read) const {
    *worked += clock_.Now() - begin_;
    *read += ThreadReadTime() - read_;
  }

 private:
  const base::Clock& clock_;
  const base::Instant begin_;
  const base::Duration read_;
};

}  // namespace hetero::feed
