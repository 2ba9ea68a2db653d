#include "runtime/train/stop_watcher.h"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace hetero::train {
namespace {

constexpr base::Duration kAgain = std::chrono::seconds(5);

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
                         std::function<void()> cut, LastResort last_resort)
    : thread_([stop, grace, &clock, cut = std::move(cut),
               last = std::move(last_resort)](std::stop_token finished) mutable {
        if (!WaitForStop(stop, finished)) return;
        if (!clock.SleepFor(grace, finished)) return;
        const base::Instant deadline = clock.Now() + last.patience;
        do {
          if (last.give_up && clock.Now() >= deadline) std::exchange(last.give_up, nullptr)();
          cut();
        } while (clock.SleepFor(kAgain, finished));
      }) {}

}  // namespace hetero::train
