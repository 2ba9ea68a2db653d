#include "runtime/train/stop_watcher.h"

#include <condition_variable>
#include <mutex>

namespace hetero::train {
namespace {

// Returns whether `stop` came before `finished`.
bool WaitForStop(std::stop_token stop, std::stop_token finished) {
  std::mutex mutex;  // guards nothing but the wait
  std::condition_variable_any changed;
  std::stop_callback wake(stop, [&] {
    std::lock_guard lock(mutex);
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, finished, [&] { return stop.stop_requested(); });
  return stop.stop_requested();
}

}  // namespace

StopWatcher::StopWatcher(std::stop_token stop, base::Duration grace, base::Clock& clock,
                         std::function<void()> cut)
    : thread_([stop, grace, &clock, cut = std::move(cut)](std::stop_token finished) {
        if (!WaitForStop(stop, finished)) return;
        if (clock.SleepFor(grace, finished)) cut();
      }) {}

}  // namespace hetero::train
