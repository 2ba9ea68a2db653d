#pragma once

#include <sched.h>

#include <deque>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace hetero::feed {

// Threads at idle priority (SCHED_IDLE), which run when nothing else on the machine wants to.
//
// Where others want to all the time, such a thread stands still for seconds wherever it happens to
// be, while it holds a lock, too. So these have a lock that nobody waits for whom they must not
// hold up: only the thread that gives them work, and the one that takes it back when it is done.
// What run() itself locks is not theirs to choose: the allocator, a log, a store's connections.
//
// `Work` is taken by all threads at once, piece by piece, the oldest first.
template <typename Work>
class IdleThreads {
 public:
  struct Calls {
    // Whether it has a piece that no thread has taken.
    std::function<bool(const Work&)> open;
    // Takes pieces until there are none. Whether the work is done, which is so for one of the
    // threads that take from it.
    std::function<bool(Work*, const std::stop_token&)> run;
  };

  IdleThreads(const std::string& name, int threads, Calls calls) : calls_(std::move(calls)) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, name](const std::stop_token& stop) { Loop(name, stop); });
    }
  }
  // Drops what is not done, as soon as each thread's run() has ended.
  ~IdleThreads() {
    for (std::jthread& thread : threads_) thread.request_stop();
  }

  // Waits until a thread would have nothing to take. False: stop was requested first.
  bool AwaitRoom(const std::stop_token& stop) {
    const base::MutexLock lock(mutex_);
    return changed_.Wait(mutex_, stop,
                         [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !FindOpen(); });
  }
  void Give(std::shared_ptr<Work> work) {
    const base::MutexLock lock(mutex_);
    given_.push_back(std::move(work));
    changed_.NotifyAll();
  }
  // Waits for work that is done; null: stop was requested first. What no thread needs any more is
  // destroyed here: its memory may be of an arena that others allocate from.
  std::shared_ptr<Work> TakeDone(const std::stop_token& stop) {
    std::vector<std::shared_ptr<Work>> unused;  // destroyed without the lock
    const base::MutexLock lock(mutex_);
    const bool there = changed_.Wait(
        mutex_, stop, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !done_.empty(); });
    unused.swap(unused_);
    if (!there) return nullptr;
    std::shared_ptr<Work> work = std::move(done_.front());
    done_.pop_front();
    return work;
  }

 private:
  // Lets go of what is taken altogether.
  bool FindOpen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (!given_.empty() && !calls_.open(*given_.front())) {
      unused_.push_back(std::move(given_.front()));
      given_.pop_front();
    }
    return !given_.empty();
  }

  void Loop(const std::string& name, const std::stop_token& stop) {
    base::SetThreadName(name);
    const sched_param none{};
    if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) {
      log::Warning("no idle priority for input threads; they compete with training",
                   {{"threads", name}});
    }
    base::MutexLock lock(mutex_);
    while (changed_.Wait(mutex_, stop,
                         [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return FindOpen(); })) {
      std::shared_ptr<Work> work = given_.front();
      lock.Unlock();
      const bool done = calls_.run(work.get(), stop);
      lock.Lock();
      if (done) done_.push_back(work);
      unused_.push_back(std::move(work));
      changed_.NotifyAll();
    }
  }

  const Calls calls_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::deque<std::shared_ptr<Work>> given_ ABSL_GUARDED_BY(mutex_);  // not all of it is taken
  std::deque<std::shared_ptr<Work>> done_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Work>> unused_ ABSL_GUARDED_BY(mutex_);  // by one of the threads
  std::vector<std::jthread> threads_;
};

}  // namespace hetero::feed
