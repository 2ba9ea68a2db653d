// Hangs for good, for the hang report to tell of: a thread waits for a lock whose holder waits for
// the thread.
#include <mutex>
#include <thread>

int main() {
  std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::thread other([&mutex] { const std::lock_guard never(mutex); });
  other.join();
}
