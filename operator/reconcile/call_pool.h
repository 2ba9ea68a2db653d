#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "operator/reconcile/call_pace.h"

namespace hetero::reconcile {

// The threads that API calls of stages run on. Each stage has as many calls at once as its CallPace
// says, one of them always on the thread that waits for it; with the others it takes turns, call by
// call. So neither a stage of ten thousand calls nor one whose calls all hang keeps another from
// going on. Threads are started when first needed: no more than the stages that were ever under way
// together could use, and 256 at most. Of 224 a stage has at most half of those that the others
// leave; the rest is for stages that would have none: however many hang, the next one has a thread
// beside its own. Safe from any thread.
class CallPool {
 public:
  CallPool(base::Clock& clock, const CallPace::Settings& pace);
  ~CallPool();  // no Run may be under way

  // Runs call(0) to call(count - 1), several at once, and returns when the last one has ended.
  void Run(size_t count, const std::function<void(size_t index)>& call);

 private:
  // One Run(), on its caller's stack.
  struct Stage {
    const std::function<void(size_t)>& call;
    const size_t count;
    CallPace pace;
    size_t next = 0;  // not yet taken
    size_t ended = 0;
    size_t helpers = 0;  // threads of the pool in a call of it
  };

  void Work(std::stop_token stop);
  // The stage's next call, without the lock while it is under way.
  void CallNext(Stage& stage) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The first in line that wants help; the end: none does.
  std::deque<Stage*>::const_iterator NextToHelp() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same, which is then last in line; null: none does.
  Stage* TakeTurn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WantsHelp(const Stage& stage) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartThreads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  base::Clock& clock_;
  const CallPace::Settings pace_;
  base::Mutex mutex_;
  base::CondVar help_wanted_;  // a stage came, or may have a helper more than before
  base::CondVar ended_;        // the last call of a stage
  std::deque<Stage*> stages_ ABSL_GUARDED_BY(mutex_);
  bool warned_ ABSL_GUARDED_BY(mutex_) = false;
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::jthread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hetero::reconcile
