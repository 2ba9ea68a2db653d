#include "runtime/job/schedule.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace hetero::job {
namespace {

StepPlan ValidationPlan(const Schedule::Options& options) {
  StepPlan::Options plan = options.training;
  plan.samples = options.validation_samples;
  plan.accumulation = 1;
  plan.last_batch = api::LastBatch::kKeep;
  plan.epochs = 1;
  plan.max_steps.reset();
  return StepPlan(plan);
}

// A period beyond the last step is as good as none, which also keeps products in range.
int64_t ClampPeriod(__int128 period, int64_t total_steps) {
  return period > total_steps ? 0 : static_cast<int64_t>(period);
}

int64_t Occurrences(int64_t steps, int64_t period) { return period > 0 ? steps / period : 0; }

}  // namespace

Schedule::Schedule(const Options& options, int32_t rank)
    : rank_(rank), training_(options.training) {
  if (options.validation_samples > 0) validation_ = ValidationPlan(options);
  if (!options.evaluation) return;
  const int64_t total = training_.total_steps();
  const __int128 by_epochs =
      __int128{options.evaluation->every_epochs.value_or(0)} * training_.steps_per_epoch();
  epoch_period_ = ClampPeriod(by_epochs, total);
  step_period_ = ClampPeriod(options.evaluation->every_steps.value_or(0), total);
  if (epoch_period_ > 0 && step_period_ > 0) {
    const int64_t divisor = std::gcd(epoch_period_, step_period_);
    common_period_ = ClampPeriod(__int128{epoch_period_ / divisor} * step_period_, total);
  }
}

int64_t Schedule::evaluation_batches() const {
  return validation_ ? validation_->steps_per_epoch() : 0;
}

bool Schedule::EvaluatesAfter(int64_t step) const {
  return EvaluationsWithin(step + 1) > EvaluationsWithin(step);
}

int64_t Schedule::evaluations() const { return EvaluationsWithin(training_.total_steps()); }

int64_t Schedule::size() const { return IndexOfStep(training_.total_steps()); }

PlannedBatch Schedule::At(int64_t index) const {
  int64_t step = 0;
  int64_t beyond = training_.total_steps();
  while (beyond - step > 1) {
    const int64_t middle = step + (beyond - step) / 2;
    (IndexOfStep(middle) <= index ? step : beyond) = middle;
  }
  PlannedBatch batch;
  const int64_t offset = index - IndexOfStep(step);
  if (offset == 0) {
    batch.step = step;
    batch.epoch = training_.At(step).epoch;
    batch.slots = training_.Share(step, rank_);
    return batch;
  }
  batch.split = Split::kValidation;
  batch.step = offset - 1;
  batch.evaluation = EvaluationsWithin(step);
  batch.slots = validation_->Share(batch.step, rank_);
  return batch;
}

int64_t Schedule::EvaluationsWithin(int64_t steps) const {
  if (!validation_ || steps == 0) return 0;
  const auto periodic = [this](int64_t n) {
    return Occurrences(n, epoch_period_) + Occurrences(n, step_period_) -
           Occurrences(n, common_period_);
  };
  if (steps < training_.total_steps()) return periodic(steps);
  return periodic(steps - 1) + 1;
}

int64_t Schedule::IndexOfStep(int64_t step) const {
  return step + EvaluationsWithin(step) * evaluation_batches();
}

}  // namespace hetero::job
