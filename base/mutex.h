#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"

// Locks whose use the compiler checks. A member says what guards it, a function what its caller
// holds, and clang refuses whatever breaks that (-Wthread-safety); g++ ignores the annotations.
//
//   base::Mutex mutex_;
//   base::CondVar changed_;
//   std::deque<Frame> frames_ ABSL_GUARDED_BY(mutex_);
//   void DropLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
//
// Not absl::Mutex: a wait here ends with a stop token, and ThreadSanitizer sees the standard
// library's mutex, but not one inside a library that was compiled without it.
namespace hetero::base {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  // Tells the compiler that the caller holds it, where no annotation can: in a callback.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds `mutex` while it lives, but for what is between Unlock() and Lock().
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() {
    if (held_) mutex_.Unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() ABSL_UNLOCK_FUNCTION() {
    mutex_.Unlock();
    held_ = false;
  }
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    mutex_.Lock();
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

// Waits for a change of what `mutex` guards. All waits release `mutex` for that time, hold it again
// when they return, and may return without a change: those without a condition belong in a loop. A
// condition is a function that says so itself:
//
//   changed_.Wait(mutex_, stop, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_; });
//
// A token that can never be stopped is the default.
class CondVar {
 public:
  // One notification, or the request to stop.
  void Wait(Mutex& mutex, const std::stop_token& stop = {}) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The same, at most until `deadline`; false once that has passed.
  bool WaitUntil(Mutex& mutex, Instant deadline, const std::stop_token& stop = {})
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // Until `there()`. Its last answer: false when stop was requested first.
  template <typename Condition>
  bool Wait(Mutex& mutex, const std::stop_token& stop, Condition there)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    while (!there()) {
      if (stop.stop_requested()) return false;
      Wait(mutex, stop);
    }
    return true;
  }
  template <typename Condition>
  void Wait(Mutex& mutex, Condition there)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    while (!there()) Wait(mutex);
  }
  // The same, false also when `deadline` came first.
  template <typename Condition>
  bool WaitUntil(Mutex& mutex, Instant deadline, const std::stop_token& stop, Condition there)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    while (!there()) {
      if (stop.stop_requested()) return false;
      if (!WaitUntil(mutex, deadline, stop)) return there();
    }
    return true;
  }

  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  std::condition_variable_any changed_;
};

}  // namespace hetero::base
