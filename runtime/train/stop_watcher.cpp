#include "runtime/train/stop_watcher.h"

#include <utility>

#include "base/mutex.h"

namespace hetero::train {
namespace {

constexpr base::Duration kAgain = std::chrono::seconds(5);

// Returns whether `stop` came before `finished`.
bool WaitForStop(std::stop_token stop, std::stop_token finished) {
  base::Mutex mutex;  // guards nothing but the wait
  base::CondVar changed;
  std::stop_callback wake(stop, [&] {
    const base::MutexLock lock(mutex);
    changed.NotifyAll();
  });
  const base::MutexLock lock(mutex);
  return changed.Wait(mutex, finished, [&] { return stop.stop_requested(); });
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
