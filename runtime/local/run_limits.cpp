#include "runtime/local/run_limits.h"

#include <algorithm>

namespace hetero::local {
namespace {

constexpr int64_t kLongest = int64_t{10} * 365 * 24 * 3600;  // more never comes, and would overflow

}  // namespace

RunLimits::RunLimits(const api::RunPolicy& policy, base::Instant began)
    : active_deadline_(policy.active_deadline_seconds),
      stall_timeout_(policy.stall_timeout_seconds),
      began_(began) {}

bool RunLimits::DeadlineOver(base::Instant now) const {
  if (!active_deadline_) return false;
  return now - began_ >= std::chrono::seconds(std::min(*active_deadline_, kLongest));
}

bool RunLimits::Stalled(const v1::JobStatus& status, base::Instant now) {
  if (!stall_timeout_) return false;
  if (status.state() != v1::JobStatus::RUNNING) {
    last_step_.reset();
    return false;
  }
  const int64_t step = status.progress().step();
  if (!last_step_ || step > last_step_->number) {
    last_step_ = Step{step, now};
    return false;
  }
  last_step_->number = step;
  if (now - last_step_->time < std::chrono::seconds(*stall_timeout_)) return false;
  last_step_.reset();
  return true;
}

}  // namespace hetero::local
