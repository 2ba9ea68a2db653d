#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "runtime/train/optimizer/learning_rate.h"
#include "runtime/train/progress/event_file.h"
#include "runtime/train/progress/observer.h"

namespace hetero::train {

// What TensorBoard shows of a job: loss/train, learning_rate, samples_per_second and wait_percent
// after each step; loss/validation and accuracy/validation after each evaluation. Training goes on
// when the file cannot be written; that is logged once. Belongs to one thread.
class TrainingCurves {
 public:
  // `folder` is created; `clock` outlives this.
  TrainingCurves(const std::string& folder, LearningRateOptions learning_rate, base::Clock& clock);

  void OnStep(const StepRecord& record);
  void OnEvaluation(const EvaluationRecord& record);
  // Running totals of the rank; the share of waiting is taken between two steps.
  void OnPhases(const Phases& phases, double train_seconds);

 private:
  void Add(int64_t step, const std::vector<Scalar>& scalars);

  const LearningRateOptions learning_rate_;
  base::Clock& clock_;
  std::unique_ptr<EventFile> file_;        // null after an error
  double wait_ = 0, total_ = 0;            // seconds, now
  double last_wait_ = 0, last_total_ = 0;  // at the last step written
};

}  // namespace hetero::train
