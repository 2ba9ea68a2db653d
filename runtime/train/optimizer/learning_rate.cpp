#include "runtime/train/optimizer/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hetero::train {
namespace {

double Cosine(double base, double floor, int64_t step, int64_t steps) {
  const double progress =
      static_cast<double>(step) / static_cast<double>(std::max<int64_t>(steps, 1));
  return floor + (base - floor) * (1 + std::cos(std::numbers::pi * progress)) / 2;
}

}  // namespace

double LearningRateAt(const LearningRateOptions& options, int64_t step) {
  const api::Schedule& schedule = options.schedule;
  double base = options.learning_rate;
  if (schedule.scale_learning_rate == api::LearningRateScaling::kLinearWithWorldSize) {
    base *= options.world_size;
  }
  if (step < schedule.warmup_steps) {
    return base * static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps);
  }
  switch (schedule.name) {
    case api::ScheduleKind::kConstant:
      return base;
    case api::ScheduleKind::kStep: {
      const int64_t epoch = step / std::max<int64_t>(options.steps_per_epoch, 1);
      const int64_t drops = epoch / std::max<int64_t>(schedule.step_epochs.value_or(1), 1);
      return base * std::pow(schedule.gamma, static_cast<double>(drops));
    }
    case api::ScheduleKind::kCosine:
      return Cosine(base, schedule.min_learning_rate, step - schedule.warmup_steps,
                    options.total_steps - schedule.warmup_steps);
  }
  return base;
}

}  // namespace hetero::train
