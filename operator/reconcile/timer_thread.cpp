#include "operator/reconcile/timer_thread.h"

#include <string>
#include <utility>

#include "base/thread.h"

namespace hetero::reconcile {

TimerThread::TimerThread(base::Clock& clock, const std::string& name)
    : clock_(clock), thread_([this, name] {
        base::SetThreadName(name);
        Run();
      }) {}

TimerThread::~TimerThread() { Finish(); }

void TimerThread::After(base::Duration delay, std::function<void()> call) {
  std::stop_source wake;
  {
    const base::MutexLock lock(mutex_);
    if (finishing_) return;
    const auto it = calls_.emplace(clock_.Now() + delay, std::move(call));
    if (it != calls_.begin()) return;
    wake = std::exchange(wake_, std::stop_source());
    filled_.NotifyOne();
  }
  wake.request_stop();
}

void TimerThread::Finish() {
  std::stop_source wake;
  {
    const base::MutexLock lock(mutex_);
    finishing_ = true;
    wake = std::exchange(wake_, std::stop_source());
    filled_.NotifyOne();
  }
  wake.request_stop();
  if (thread_.joinable()) thread_.join();
}

void TimerThread::Run() {
  base::MutexLock lock(mutex_);
  while (true) {
    filled_.Wait(mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return finishing_ || !calls_.empty();
    });
    if (calls_.empty()) return;
    const base::Duration wait = calls_.begin()->first - clock_.Now();
    if (wait > base::Duration::zero()) {
      if (finishing_) break;
      const std::stop_token woken = wake_.get_token();
      lock.Unlock();
      clock_.SleepFor(wait, woken);
      lock.Lock();
      continue;
    }
    std::function<void()> call = std::move(calls_.begin()->second);
    calls_.erase(calls_.begin());
    lock.Unlock();
    call();
    call = nullptr;  // what it holds may take locks when it goes
    lock.Lock();
  }
  const auto dropped = std::exchange(calls_, {});
  lock.Unlock();
}

}  // namespace hetero::reconcile
