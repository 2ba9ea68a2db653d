#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "runtime/job/schedule.h"
#include "runtime/train/batch_source.h"
#include "runtime/train/checkpoint/checkpointer.h"
#include "runtime/train/checkpoint/training_state.h"
#include "runtime/train/device/device.h"
#include "runtime/train/interrupts.h"
#include "runtime/train/pipeline_parallel/partition.h"
#include "runtime/train/process_group/agreement.h"
#include "runtime/train/process_group/gloo_group.h"
#include "runtime/train/progress/observer.h"
#include "runtime/train/progress/phase_clock.h"
#include "runtime/train/rank_comparison.h"
#include "runtime/train/trainer_options.h"

namespace hetero::train {

// What one rank carries from generation to generation and does in each: take the newest state, run
// the training loop over the generation's process group, leave the last checkpoint and the trained
// weights. Belongs to one thread. Throws what LibTorch throws; RunTrainer catches it.
class RankTraining {
 public:
  struct Collaborators {
    const job::Schedule& schedule;
    BatchSource& batches;
    Observer& observer;
    base::Clock& clock;
  };
  // Everything named here outlives this. `options.generation` is that of the latest Run().
  RankTraining(const TrainerOptions& options, const Collaborators& collaborators);

  // Builds the model and opens the device. Before all others.
  absl::Status Open();

  // Trains over `group`, null for a job of one rank, to the last step. kAborted when the generation
  // is over, or when all ranks have agreed that some leave: parted() says so then, and a checkpoint
  // of that step is under way, if the job has any. `agreed_to_stop` is called when all ranks have
  // agreed to stop, or some to leave, and still have to bring together what they hold.
  absl::Status Run(GlooGroup* group, Interrupts interrupts,
                   const std::function<void()>& agreed_to_stop);
  bool parted() const { return parted_; }
  // After Run() ended in an error or threw: a step under way is undone.
  void Abort() { state_->Abort(); }
  // After a stop outside of Run(), or in it: rank 0 leaves a checkpoint. Not with partitions, where
  // no rank can alone.
  void KeepStoppedState();

  // Every step is done here.
  bool complete() const { return complete_; }
  // And rank 0's checkpoint and the trained weights are written, as far as this rank knows.
  bool delivered() const { return delivered_; }
  bool partitioned() const { return layout_ != nullptr; }
  int64_t steps_done() const { return state_->standing.step; }
  Device& device() { return *device_; }

  // What this rank is doing, for messages: "training step 12".
  const std::string& activity() const { return activity_; }
  void set_activity(std::string activity) { activity_ = std::move(activity); }

 private:
  absl::Status TakeState(GlooGroup* group, Agreement& agreement);
  // Rank 0's, when the job has checkpoints and it is not there.
  absl::Status OpenCheckpointer();
  absl::StatusOr<std::unique_ptr<Checkpointer>> MakeCheckpointer() const;
  void Probe(GlooGroup* group, Agreement& agreement);
  absl::Status RunLoop(GlooGroup* group, Agreement& agreement);
  void Part(GlooGroup* group, Agreement& agreement, const std::vector<int32_t>& leavers);
  void KeepStateForRankZero();
  void KeepState(const GlooGroup* group);
  absl::Status SaveResult();
  const std::string& model_name() const { return options_.job.spec.training.model.name; }

  const TrainerOptions& options_;
  const job::Schedule& schedule_;
  BatchSource& batches_;
  Observer& observer_;
  base::Clock& clock_;
  RankComparison::Schedule comparisons_;
  Interrupts interrupts_;  // of the latest Run()
  std::string activity_;
  std::unique_ptr<Device> device_;
  std::shared_ptr<const PartitionLayout> layout_;  // null without partitions
  std::optional<TrainingState> state_;
  CheckpointWriter::Source whole_;              // of rank 0, at the end
  std::unique_ptr<Checkpointer> checkpointer_;  // of rank 0, when the job has checkpoints
  std::optional<PhaseClock> phases_;            // from the first step on
  std::vector<int32_t> leavers_;                // as the latest loop ended
  bool parted_ = false;
  bool complete_ = false;
  bool delivered_ = false;
};

}  // namespace hetero::train
