#include "runtime/train/progress/training_curves.h"

#include "base/log.h"

namespace hetero::train {

TrainingCurves::TrainingCurves(const std::string& folder, LearningRateOptions learning_rate,
                               base::Clock& clock)
    : learning_rate_(learning_rate), clock_(clock) {
  absl::StatusOr<std::unique_ptr<EventFile>> file = EventFile::Create(folder, clock.WallNow());
  if (file.ok()) {
    file_ = *std::move(file);
  } else {
    log::Warning("no curves for TensorBoard", {{"error", file.status().message()}});
  }
}

void TrainingCurves::OnStep(const StepRecord& record) {
  const double seconds = total_ - last_total_;
  const double wait = seconds > 0 ? 100 * (wait_ - last_wait_) / seconds : 0;
  const double rate = record.seconds > 0 ? static_cast<double>(record.samples) / record.seconds : 0;
  last_wait_ = wait_;
  last_total_ = total_;
  Add(record.step, {{"loss/train", record.loss},
                    {"learning_rate", LearningRateAt(learning_rate_, record.step - 1)},
                    {"samples_per_second", rate},
                    {"wait_percent", wait}});
}

void TrainingCurves::OnEvaluation(const EvaluationRecord& record) {
  Add(record.step, {{"loss/validation", record.loss}, {"accuracy/validation", record.accuracy}});
}

void TrainingCurves::OnPhases(const Phases& phases, double train_seconds) {
  wait_ = phases.wait;
  total_ = train_seconds;
}

void TrainingCurves::Add(int64_t step, const std::vector<Scalar>& scalars) {
  if (file_ == nullptr) return;
  if (absl::Status status = file_->Add(step, clock_.WallNow(), scalars); !status.ok()) {
    log::Warning("no more curves for TensorBoard", {{"error", status.message()}});
    file_.reset();
  }
}

}  // namespace hetero::train
