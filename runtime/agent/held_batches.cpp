#include "runtime/agent/held_batches.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"

namespace hetero::agent {
namespace {

constexpr size_t kMostNamed = 8;  // batches in a message

}  // namespace

std::string HeldBatches::Describe() const {
  std::vector<std::string> names;
  for (const auto& [slot, held] : held_) {
    if (names.size() < kMostNamed) names.push_back(held.what);
  }
  return absl::StrCat("the script holds all ", held_.size(), " batches that it may (",
                      absl::StrJoin(names, ", "), held_.size() > names.size() ? ", ..." : "",
                      "): let go of their arrays, or keep copies (array.copy(), tensor.clone())");
}

absl::Status HeldBatches::WaitForRoom(const std::stop_token& stop) {
  const base::Instant began = clock_.Now();
  const base::Instant end = began + options_.deadline;
  base::Instant warning = began + options_.warning;
  const base::MutexLock lock(mutex_);
  while (!HasRoom()) {
    freed_.WaitUntil(mutex_, std::min(warning, end), stop);
    if (HasRoom()) break;
    if (stop.stop_requested()) return absl::CancelledError("stopped while the script held all");
    const base::Instant now = clock_.Now();
    const double seconds = base::ToSeconds(now - began);
    if (now >= end) {
      return absl::DeadlineExceededError(
          absl::StrCat("no batch for ", seconds, " s: ", Describe()));
    }
    if (now < warning) continue;
    log::Warning(Describe(), {{"rank", options_.rank}, {"seconds", seconds}});
    warning = now + options_.warning;
  }
  return absl::OkStatus();
}

void HeldBatches::Hold(int64_t slot, std::vector<feed::Slab> slabs, std::string what) {
  const base::MutexLock lock(mutex_);
  held_.insert_or_assign(slot, Held{.slabs = std::move(slabs), .what = std::move(what)});
}

absl::Status HeldBatches::Free(int64_t slot) {
  const base::MutexLock lock(mutex_);
  // Under the lock: who waits finds a slot that is free.
  if (held_.erase(slot) == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("slot ", slot, " is freed, and no batch of this script lies there"));
  }
  freed_.NotifyAll();
  return absl::OkStatus();
}

void HeldBatches::LeaveAll() {
  const base::MutexLock lock(mutex_);
  for (auto& [slot, held] : held_) {
    for (feed::Slab& slab : held.slabs) slab.Leave();
  }
  held_.clear();
}

}  // namespace hetero::agent
