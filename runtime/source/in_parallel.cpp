#include "runtime/source/in_parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "base/thread.h"

namespace hetero::source {
namespace {

// What waits for a remote store hardly computes; what reads local files has no more cores.
constexpr size_t kMaxThreads = 8;

class Workers {
 public:
  Workers(size_t count, const std::function<absl::Status(size_t)>& work)
      : work_(work), statuses_(count), first_bad_(count) {}

  absl::Status Run() {
    {
      std::vector<std::jthread> threads;
      try {
        for (size_t i = 1; i < std::min(statuses_.size(), kMaxThreads); ++i) {
          threads.emplace_back([this] {
            base::SetThreadName("scan");
            Take();
          });
        }
      } catch (const std::system_error&) {
        // No more threads are allowed here; those that there are do it all.
      }
      Take();
    }
    return first_bad_ < statuses_.size() ? statuses_[first_bad_] : absl::OkStatus();
  }

 private:
  // In their order, so that all before the first bad one are done.
  void Take() {
    for (size_t i = next_++; i < first_bad_; i = next_++) {
      statuses_[i] = work_(i);
      if (statuses_[i].ok()) continue;
      size_t first = first_bad_;
      while (i < first && !first_bad_.compare_exchange_weak(first, i)) {
      }
    }
  }

  const std::function<absl::Status(size_t)>& work_;
  std::vector<absl::Status> statuses_;  // each is of the thread that took it
  std::atomic<size_t> next_ = 0;
  std::atomic<size_t> first_bad_;
};

}  // namespace

absl::Status InParallel(size_t count, const std::function<absl::Status(size_t)>& work) {
  return Workers(count, work).Run();
}

}  // namespace hetero::source
