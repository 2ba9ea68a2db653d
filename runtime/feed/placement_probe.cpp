#include "runtime/feed/placement_probe.h"

#include <utility>

namespace hetero::feed {

PlacementProbe::PlacementProbe(PlacementInput input) : input_(std::move(input)) {
  // Nothing that could be measured would change these.
  if (input_.cuts.size() == 1 || (!input_.cuts.empty() && input_.trainer_cores <= 0)) {
    choice_ = ChooseCut(input_);
  }
}

int32_t PlacementProbe::left() const {
  if (choice_) return choice_->left;
  return input_.cuts.empty() ? 0 : input_.cuts.front().left;
}

void PlacementProbe::OnBatch(const Batch& batch) {
  if (input_.cuts.empty()) return;
  ++batches_;
  if (batch.ticket.left_to_trainer != input_.cuts.front().left) return;
  samples_ += batch.count();
  cpu_seconds_ += batch.cpu_seconds;
}

void PlacementProbe::Choose(double worker_samples_per_second, double demand,
                            double bytes_per_second) {
  input_.worker_samples_per_second = worker_samples_per_second;
  input_.demand = demand;
  input_.bytes_per_second = bytes_per_second;
  choice_ = ChooseCut(input_);
}

PlacementState PlacementProbe::state() const {
  return {.choice = choice_,
          .worker_seconds = samples_ > 0 ? cpu_seconds_ / static_cast<double>(samples_) : 0};
}

}  // namespace hetero::feed
