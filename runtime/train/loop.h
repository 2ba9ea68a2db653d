#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "runtime/train/agreement.h"
#include "runtime/train/ddp.h"
#include "runtime/train/input.h"
#include "runtime/train/learning_rate.h"
#include "runtime/train/model.h"
#include "runtime/train/optimizer.h"
#include "runtime/train/phase_clock.h"
#include "runtime/train/trainer.h"

namespace hetero::train {

// The training of one rank over a formed group: every step and every evaluation of the schedule.
// Owned and called by one thread. Throws what LibTorch throws; RunTrainer catches it.
class TrainingLoop {
 public:
  // All collaborators outlive the loop. `group` is null for a job of one rank.
  TrainingLoop(const TrainerOptions& options, const job::Schedule& schedule, Model& model,
               GlooGroup* group, feed::BatchStream& batches, Observer& observer, base::Clock& clock,
               std::stop_token stop);

  absl::Status Run();
  // "training step 12", for messages.
  std::string Where() const;

 private:
  // A step that is done here but whose loss is not known over all ranks yet. It travels with the
  // next exchange.
  struct PendingStep {
    StepRecord record;
    double loss = 0;  // sum over this rank's samples
    int64_t samples = 0;
  };
  // Samples that go through the model together. `ownership` sums to the number of real ones.
  struct Piece {
    torch::Tensor images, labels, ownership;
    bool padded = false;
  };

  absl::Status TrainStep(int64_t step);
  absl::Status FinishEpoch(int64_t step);
  absl::Status Evaluate(int64_t step);

  absl::StatusOr<std::unique_ptr<feed::Batch>> NextBatch(int64_t step);
  RankState StateFor(const absl::StatusOr<std::unique_ptr<feed::Batch>>& batch) const;
  absl::StatusOr<JobState> Agree(RankState state);
  absl::Status ReportPending(const JobState& state);
  double ComputeGradients(int64_t step, const feed::Batch& batch);
  Piece MakePiece(const feed::Batch& batch, int64_t first, int64_t count) const;
  double RunPiece(const Piece& piece, double scale, bool reduce);
  absl::Status UpdateParameters(int64_t step);

  const TrainerOptions& options_;
  const api::Training& training_;
  const job::Schedule& schedule_;
  Model& model_;
  feed::BatchStream& batches_;
  Observer& observer_;
  base::Clock& clock_;
  std::stop_token stop_;

  Agreement agreement_;
  InputConverter input_;
  std::unique_ptr<DataParallel> data_parallel_;  // null for one rank
  Optimizer optimizer_;
  LearningRateOptions learning_rate_;
  PhaseClock phases_;
  job::StreamDigest digest_;  // of the whole job
  int64_t samples_consumed_ = 0;
  int64_t step_ = 0;
  std::optional<PendingStep> pending_;
};

}  // namespace hetero::train
