#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/unit/operator/plan/history.h"

namespace hetero::plan {

void History::SeePods(std::vector<std::shared_ptr<const ObservedPod>> pods) {
  view_.pods = std::move(pods);
  pods_seen_ = world_->now;
  for (; world_->removed_seen < world_->removed.size(); ++world_->removed_seen) {
    RemovedPod& gone = removed_.emplace_back(world_->removed[world_->removed_seen]);
    gone.time = world_->now;
  }
}

// It never falls, and it is not further off than it says. What happened after `asOf` is not in it.
void History::CheckCost(const api::JobStatus& was, const api::JobStatus& is) {
  if (!priced_) return;
  if (!is.cost) return Break("no account is kept");
  if (was.cost && is.cost->dollars < was.cost->dollars) Break("the cost fell");
  if (was.cost && is.cost->as_of < was.cost->as_of) Break("the account went back");
}

void History::CheckFinalCost() {
  if (!priced_ || world_->job_deleted) return;
  const api::JobCost cost = world_->status().cost.value_or(api::JobCost{});
  constexpr double kRounding = 2e-6;
  const double truth = world_->TrueDollars();
  if (std::abs(cost.dollars - truth) > cost.uncertain_dollars + kRounding) {
    Break(absl::StrCat("the job has cost ", truth, ", and its status says ", cost.dollars, " +- ",
                       cost.uncertain_dollars));
  }
}

}  // namespace hetero::plan
