#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "operator/plan/observed.h"

namespace hetero::reconcile {

// Pods as they last were before the store let go of them: between two passes over a job its pods
// may come, end and go, and each second of them costs money. Kept until the job's next pass; of a
// process that stands by, the last ones. Safe from any thread.
class Departures {
 public:
  // `owner`: as the pods' store groups them (ownership.h).
  void Add(const std::string& owner, std::shared_ptr<const plan::ObservedPod> pod,
           base::WallTime now) {
    if (owner.empty()) return;
    const base::MutexLock lock(mutex_);
    by_owner_[owner].push_back({.last = std::move(pod), .time = now});
    order_.push_back(owner);
    while (order_.size() > kMost) {
      DropOldestOf(order_.front());
      order_.pop_front();
    }
  }

  // In order of their going.
  std::vector<plan::RemovedPod> Take(const std::string& owner) {
    const base::MutexLock lock(mutex_);
    const auto found = by_owner_.find(owner);
    if (found == by_owner_.end()) return {};
    std::vector<plan::RemovedPod> taken = std::move(found->second);
    by_owner_.erase(found);
    std::erase(order_, owner);
    return taken;
  }

 private:
  static constexpr size_t kMost = 10'000;

  void DropOldestOf(const std::string& owner) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = by_owner_.find(owner);
    if (found == by_owner_.end()) return;
    found->second.erase(found->second.begin());
    if (found->second.empty()) by_owner_.erase(found);
  }

  base::Mutex mutex_;
  std::map<std::string, std::vector<plan::RemovedPod>> by_owner_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> order_ ABSL_GUARDED_BY(mutex_);  // their owners, the oldest first
};

}  // namespace hetero::reconcile
