#include "operator/reconcile/job_memory.h"

#include <algorithm>
#include <utility>

#include "api/labels.h"
#include "base/log.h"

namespace hetero::reconcile {

std::shared_ptr<const plan::ObservedJob> OwnWrites::Newest(
    std::shared_ptr<const plan::ObservedJob> stored) {
  if (newest_ == nullptr) return stored;
  const bool older = std::find(superseded_.begin(), superseded_.end(), stored->resource_version) !=
                     superseded_.end();
  if (older) return newest_;
  superseded_.clear();
  newest_ = nullptr;
  return stored;
}

void OwnWrites::Written(const plan::ObservedJob& from, const api::JobStatus& status,
                        const std::string& resource_version) {
  if (resource_version.empty() || resource_version == from.resource_version) return;
  superseded_.push_back(from.resource_version);
  if (superseded_.size() > kKept) superseded_.erase(superseded_.begin());
  auto written = std::make_shared<plan::ObservedJob>(from);
  written->status = status;
  written->resource_version = resource_version;
  newest_ = std::move(written);
}

base::Duration ConflictBackoff::Wait(const std::string& resource_version, base::Instant now) const {
  if (conflicts_ == 0 || resource_version != resource_version_ || now >= until_) {
    return base::Duration::zero();
  }
  return until_ - now;
}

base::Duration ConflictBackoff::Conflicted(const std::string& resource_version, base::Instant now) {
  constexpr base::Duration kFirst = std::chrono::milliseconds(50);
  constexpr int kDoublings = 5;
  conflicts_ = resource_version == resource_version_ ? std::min(conflicts_ + 1, kDoublings + 1) : 1;
  resource_version_ = resource_version;
  const base::Duration wait = kFirst * (1 << (conflicts_ - 1));
  until_ = now + wait;
  return wait;
}

std::shared_ptr<const plan::ObservedJob> KnownManager::Complete(
    std::shared_ptr<const plan::ObservedJob> job) {
  const std::string& manager = job->job.spec.manager();
  if (!manager.empty()) {
    name_ = manager;
    told_ = false;
  }
  if (name_ == manager || name_ == api::kManagedBySelf) return job;
  if (!std::exchange(told_, true)) {
    log::Warning("the API server brings a job without its spec.managedBy: it stays its manager's",
                 {{"job", job->job.metadata.name}, {"manager", name_}});
  }
  auto completed = std::make_shared<plan::ObservedJob>(*job);
  completed->job.spec.managed_by = name_;
  return completed;
}

void SettledPods::Add(const std::vector<std::string>& uids) {
  for (const std::string& uid : uids) {
    if (!uids_.insert(uid).second) continue;
    order_.push_back(uid);
    if (order_.size() <= kKept) continue;
    uids_.erase(order_.front());
    order_.erase(order_.begin());
  }
}

}  // namespace hetero::reconcile
