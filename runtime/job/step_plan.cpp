#include "runtime/job/step_plan.h"

#include <algorithm>
#include <limits>

namespace hetero::job {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

int64_t MultiplySaturated(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? kUnlimited : product;
}

int64_t TotalSteps(const StepPlan::Options& options, int64_t steps_per_epoch) {
  if (steps_per_epoch == 0 || (!options.epochs && !options.max_steps)) return 0;
  const int64_t by_epochs =
      options.epochs ? MultiplySaturated(*options.epochs, steps_per_epoch) : kUnlimited;
  return std::min(by_epochs, options.max_steps.value_or(kUnlimited));
}

}  // namespace

StepPlan::StepPlan(const Options& options)
    : options_(options),
      global_batch_(options.batch_size_per_worker * options.ranks * options.accumulation),
      steps_per_epoch_(options.samples / global_batch_),
      total_steps_(0) {
  if (options_.last_batch == api::LastBatch::kKeep && options_.samples % global_batch_ != 0) {
    ++steps_per_epoch_;
  }
  total_steps_ = TotalSteps(options_, steps_per_epoch_);
}

int64_t StepPlan::total_epochs() const {
  if (total_steps_ == 0) return 0;
  return (total_steps_ - 1) / steps_per_epoch_ + 1;
}

Step StepPlan::At(int64_t step) const {
  Step result;
  result.step = step;
  result.epoch = step / steps_per_epoch_;
  result.step_in_epoch = step % steps_per_epoch_;
  result.slots.first = result.step_in_epoch * global_batch_;
  result.slots.count = std::min(global_batch_, options_.samples - result.slots.first);
  return result;
}

SlotRange StepPlan::PipelineShare(int64_t step, int32_t rank) const {
  const SlotRange slots = At(step).slots;
  const int64_t each = slots.count / options_.ranks;
  const int64_t longer = slots.count % options_.ranks;
  const auto begin_of = [&](int64_t r) { return slots.first + r * each + std::min(r, longer); };
  const int64_t first_rank = rank - rank % options_.partitions;
  const int64_t first = begin_of(first_rank);
  return {.first = first, .count = begin_of(first_rank + options_.partitions) - first};
}

SlotRange StepPlan::Share(int64_t step, int32_t rank) const {
  SlotRange share = PipelineShare(step, rank);
  if (rank % options_.partitions != 0) share.count = 0;
  return share;
}

double StepPlan::LossScale(int64_t step, int32_t rank) const {
  const auto own = static_cast<double>(PipelineShare(step, rank).count);
  const int32_t pipelines = options_.ranks / options_.partitions;
  return pipelines * own / static_cast<double>(At(step).slots.count);
}

bool StepPlan::IsLastOfEpoch(int64_t step) const {
  return At(step).step_in_epoch == steps_per_epoch_ - 1;
}

}  // namespace hetero::job
