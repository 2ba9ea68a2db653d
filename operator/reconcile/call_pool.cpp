#include "operator/reconcile/call_pool.h"

#include <algorithm>
#include <latch>
#include <utility>

#include "base/thread.h"

namespace hetero::reconcile {

CallPool::CallPool(int max_threads) : max_threads_(std::max(1, max_threads)) {}

CallPool::~CallPool() {
  std::vector<std::jthread> threads;
  {
    const base::MutexLock lock(mutex_);
    threads.swap(threads_);
  }
  for (std::jthread& thread : threads) thread.request_stop();
}

void CallPool::Run(std::vector<std::function<void()>> calls) {
  if (calls.size() == 1) return calls.front()();
  // Shared: the last call may still be inside count_down() when wait() returns.
  const auto done = std::make_shared<std::latch>(static_cast<std::ptrdiff_t>(calls.size()));
  {
    const base::MutexLock lock(mutex_);
    for (std::function<void()>& call : calls) {
      queue_.emplace_back([call = std::move(call), done] {
        call();
        done->count_down();
      });
    }
    while (threads_.size() < max_threads_ && idle_ < queue_.size()) {
      threads_.emplace_back([this](std::stop_token stop) { Work(std::move(stop)); });
      ++idle_;
    }
  }
  queued_.NotifyAll();
  done->wait();
}

void CallPool::Work(std::stop_token stop) {
  base::SetThreadName("api-call");
  base::MutexLock lock(mutex_);
  const auto filled = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !queue_.empty(); };
  while (queued_.Wait(mutex_, stop, filled)) {
    std::function<void()> call = std::move(queue_.front());
    queue_.pop_front();
    --idle_;
    lock.Unlock();
    call();
    lock.Lock();
    ++idle_;
  }
}

}  // namespace hetero::reconcile
