#pragma once

#include <deque>
#include <functional>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace hetero::reconcile {

// The threads that API calls of one stage run on, shared by all jobs. Started when first needed.
// Safe from any thread.
class CallPool {
 public:
  explicit CallPool(int max_threads);
  ~CallPool();  // no Run may be under way

  // Runs all of `calls`, several at once, and returns when the last one has ended. A single one
  // runs on the caller's thread.
  void Run(std::vector<std::function<void()>> calls);

 private:
  void Work(std::stop_token stop);

  const size_t max_threads_;
  base::Mutex mutex_;
  base::CondVar queued_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::jthread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hetero::reconcile
