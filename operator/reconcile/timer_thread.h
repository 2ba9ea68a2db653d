#pragma once

#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"

namespace hetero::reconcile {

// One thread that runs what is due, in order of time. Safe from any thread.
class TimerThread {
 public:
  TimerThread(base::Clock& clock, const std::string& name);
  ~TimerThread();  // Finish()

  void After(base::Duration delay, std::function<void()> call);
  // Runs what is due by now, drops the rest and ends the thread. Later calls are dropped.
  void Finish();

 private:
  void Run();

  base::Clock& clock_;
  base::Mutex mutex_;
  base::CondVar filled_;
  std::multimap<base::Instant, std::function<void()>> calls_ ABSL_GUARDED_BY(mutex_);
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  std::stop_source wake_ ABSL_GUARDED_BY(mutex_);  // ends the sleep under way
  std::thread thread_;
};

}  // namespace hetero::reconcile
