#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/job/schedule.h"
#include "runtime/train/batch_source.h"
#include "runtime/train/checkpoint/checkpointer.h"
#include "runtime/train/checkpoint/training_state.h"
#include "runtime/train/device/device.h"
#include "runtime/train/interrupts.h"
#include "runtime/train/model_runner.h"
#include "runtime/train/models/model.h"
#include "runtime/train/optimizer/learning_rate.h"
#include "runtime/train/optimizer/optimizer.h"
#include "runtime/train/pipeline_parallel/partition.h"
#include "runtime/train/process_group/agreement.h"
#include "runtime/train/process_group/gloo_group.h"
#include "runtime/train/process_group/pipeline_place.h"
#include "runtime/train/progress/observer.h"
#include "runtime/train/progress/phase_clock.h"
#include "runtime/train/rank_comparison.h"
#include "runtime/train/trainer_options.h"

namespace hetero::train {

// The training of one rank over a formed group: every step and every evaluation of the schedule
// that `state` has not done yet. Owned and called by one thread. Throws what LibTorch throws;
// RunTrainer catches it, and `state` is then as after its last step once it is aborted.
class TrainingLoop {
 public:
  struct Collaborators {
    TrainingState& state;
    GlooGroup* group = nullptr;               // null for a job of one rank
    const PartitionLayout* layout = nullptr;  // null without partitions
    Agreement& agreement;
    RankComparison::Schedule& comparisons;
    BatchSource& batches;
    Checkpointer* checkpointer = nullptr;  // null: this rank writes none
    Observer& observer;
    PhaseClock& phases;
    Device& device;
  };
  // Everything named here outlives the loop.
  TrainingLoop(const TrainerOptions& options, const job::Schedule& schedule,
               const Collaborators& collaborators, base::Clock& clock, Interrupts interrupts);

  // kAborted when the generation was over while this rank waited for a batch; and, with leavers(),
  // when all ranks have agreed that some of them leave now. kCancelled when all are to stop.
  absl::Status Run();
  // The ranks that leave; empty while none do.
  const std::vector<int32_t>& leavers() const { return leavers_; }
  // "training step 12", "the evaluation after step 12", for messages.
  std::string Where() const;

 private:
  absl::Status TrainStep(int64_t step);
  absl::Status FinishEpoch(int64_t step);
  absl::Status Evaluate(int64_t step);
  // `compared`: all ranks hold the same, as was just seen, or there is one alone.
  void WriteCheckpoint(bool compared);

  bool EvaluationIsDue() const;
  bool GenerationIsOver() const;
  bool StopRequested() const { return interrupts_.stop.stop_requested(); }
  Leave OwnLeave() const;
  absl::Status Seek();
  absl::StatusOr<std::unique_ptr<feed::Batch>> NextBatch(int64_t step);
  absl::StatusOr<JobState> Agree(RankState state);
  absl::Status ReportPending(const JobState& state);
  double ComputeGradients(int64_t step, const feed::Batch& batch);
  absl::Status UpdateParameters(int64_t step);

  const TrainerOptions& options_;
  const api::Training& training_;
  const job::Schedule& schedule_;
  TrainingState& state_;
  Model& model_;
  BatchSource& source_;
  feed::BatchStream* batches_ = nullptr;
  Checkpointer* checkpointer_;
  Observer& observer_;
  base::Clock& clock_;
  const Interrupts interrupts_;

  GlooGroup* group_;
  const PipelinePlace place_;
  Agreement& agreement_;
  Optimizer& optimizer_;
  LearningRateOptions learning_rate_;
  PhaseClock& phases_;
  ModelRunner runner_;
  RankComparison comparison_;
  std::vector<int32_t> leavers_;
  bool stepped_ = false;
  bool evaluates_ = false;
};

}  // namespace hetero::train
