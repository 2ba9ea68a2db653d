#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "runtime/job/step_plan.h"
#include "runtime/train/checkpoint/checkpoint_lease.h"
#include "runtime/train/checkpoint/checkpoint_lock.h"
#include "runtime/train/checkpoint/checkpoint_place.h"
#include "runtime/train/checkpoint/checkpoint_writer.h"
#include "runtime/train/checkpoint/training_state.h"
#include "runtime/train/progress/observer.h"

namespace hetero::train {

// Rank 0's checkpoints: when one is due, what its manifest says, and which of them a job goes on
// from. Belongs to one thread.
class Checkpointer {
 public:
  // What a checkpoint says of the job whose state it holds, and who writes it.
  struct Options {
    api::HeteroTrainingJob job;
    std::string run;     // unique per run of the job
    std::string member;  // "gpu-0", for messages
    int32_t world_size = 1;
    int32_t classes = 0;
    api::ImageShape input;  // of one sample
    int64_t samples = 0;    // of the training split
    std::string dataset_fingerprint;
    std::string dataset_versions;  // of the objects it lies in; empty: none
  };
  // Opens the place that options.job.spec.training.checkpoint names, which must be set, and locks
  // it. Errors as CheckpointLock::Take and CheckpointLease::Take. `plan` and `clock` outlive this.
  static absl::StatusOr<std::unique_ptr<Checkpointer>> Open(Options options,
                                                            const job::StepPlan& plan,
                                                            base::Clock& clock,
                                                            std::stop_token stop);

  // The newest checkpoint that may be used; nothing when there is none. Errors as
  // CheckpointPlace::LoadNewest.
  absl::StatusOr<std::optional<CheckpointPlace::Loaded>> Load();
  // What people should know of the checkpoint that was loaded last; empty: nothing.
  const std::string& notice() const { return notice_; }
  // Where the job stood then.
  static Standing StandingOf(const CheckpointManifest& manifest);

  // Between two steps: reports what was written, and says whether to Start() now. A failure to
  // write is reported, and training goes on. Without a rule of the job's own the clock asks for one
  // only where the ranks have just been `compared`: a job would go on from what one of them has
  // computed wrongly.
  bool IsDueAfter(int64_t step, bool compared, Observer& observer);
  // The clock asks for one as soon as they are.
  bool WantsComparison(int64_t step) const;
  // One is due now, whatever the rules say.
  void Want() { wanted_ = true; }
  // Begins to write what generation `generation` of the job has reached; `source` gives kModelFile
  // and kOptimizerFile, on another thread. Not while an earlier write is under way.
  void Start(const Standing& standing, int64_t generation, CheckpointWriter::Source source);
  // Begins to write the state unless it is written already, once an earlier write is over.
  void Keep(const Standing& standing, int64_t generation, CheckpointWriter::Source source,
            Observer& observer);
  // Waits for the write under way.
  void Settle(Observer& observer) { Report(writer_.Wait(), observer); }
  // Of the last that succeeded, or was loaded; -1: none.
  int64_t written_step() const { return written_step_; }
  // Writes the state unless it is written already, and waits for it.
  void Finish(const Standing& standing, int64_t generation, CheckpointWriter::Source source,
              Observer& observer);

 private:
  // Where the checkpoints are, and what keeps others from there. One lock at most.
  struct Opened {
    std::unique_ptr<CheckpointLock> lock;
    std::unique_ptr<CheckpointLease> lease;
    std::unique_ptr<CheckpointPlace> place;
  };
  static absl::StatusOr<Opened> OpenPlace(const Options& options, base::Clock& clock,
                                          std::stop_token stop);
  Checkpointer(Options options, const job::StepPlan& plan, base::Clock& clock, Opened opened);
  struct Place {
    int64_t epoch = 0;
    int64_t slot = 0;
    bool operator==(const Place&) const = default;
  };
  bool IsDue(int64_t step, bool compared) const;
  bool IntervalIsOver() const;
  Place PlaceAfter(int64_t step) const;
  // Whether this job's next step is the one after `manifest`, whose samples and model fit.
  absl::Status CheckGoesOn(const CheckpointManifest& manifest) const;
  void Report(const std::optional<CheckpointWriter::Result>& result, Observer& observer);
  CheckpointManifest Describe() const;
  std::string run_filter() const;

  const Options options_;
  const api::Checkpoint& spec_;
  const job::StepPlan& plan_;
  base::Clock& clock_;
  const Opened opened_;  // outlives the writer
  std::string notice_;
  int64_t started_step_ = -1;  // of the last write begun
  int64_t written_step_ = -1;  // of the last that succeeded, or was loaded
  base::Instant started_at_;
  bool overdue_ = false;  // the writer was busy when one was due
  bool wanted_ = false;
  CheckpointWriter writer_;
};

}  // namespace hetero::train
