#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "runtime/feed/batch_stream.h"
#include "runtime/job/schedule.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/train/phases.h"

// The training of one rank. No LibTorch type appears here, so that main and tests stay cheap to
// compile; everything below this header (models, DDP, optimisers) is LibTorch's.
namespace hetero::train {

// The store in which ranks meet; RendezvousStore (rendezvous_store.h) implements c10d::Store on it.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;
  virtual absl::Status Set(const std::string& key, const std::string& value) = 0;
  // Waits for the key until `timeout`.
  virtual absl::StatusOr<std::string> Get(const std::string& key, base::Duration timeout) = 0;
  virtual absl::Status Wait(const std::vector<std::string>& keys, base::Duration timeout) = 0;
  virtual absl::StatusOr<bool> Check(const std::vector<std::string>& keys) = 0;
  virtual absl::StatusOr<int64_t> Add(const std::string& key, int64_t amount) = 0;
  virtual absl::StatusOr<std::string> CompareSet(const std::string& key,
                                                 const std::string& expected,
                                                 const std::string& desired) = 0;
  virtual absl::StatusOr<bool> Delete(const std::string& key) = 0;
  virtual absl::StatusOr<int64_t> CountKeys() = 0;
};

// The generations of a job as one rank sees them: in each, the same ranks form one process group.
// Called by the training thread.
class Generations {
 public:
  virtual ~Generations() = default;
  struct Generation {
    int64_t number = 0;
    std::string host;                      // this rank's address for the process group
    std::shared_ptr<KeyValueStore> store;  // for this generation alone
    std::stop_token over;                  // requested when a newer one has opened
  };
  // Waits for a generation newer than `after`. kCancelled on `stop`; kOutOfRange when another rank
  // has left with the result of the whole job, so that nothing is left to do; other errors end the
  // training.
  virtual absl::StatusOr<Generation> Next(int64_t after, std::stop_token stop) = 0;
  // The process group of generation `number` broke here; a newer generation is needed.
  virtual void ReportBroken(int64_t number, const std::string& why) = 0;
};

// Where a rank's batches come from. Called by the training thread.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // The stream of the batches from `index` of the schedule on; the one returned before is gone,
  // unless it stands there.
  virtual absl::StatusOr<feed::BatchStream*> From(int64_t index) = 0;
};

struct StepRecord {
  int64_t step = 0;           // completed steps
  int64_t epoch = 0;          // 1-based, of this step
  int64_t step_in_epoch = 0;  // 1-based
  double loss = 0;            // mean over the step's samples of all ranks
  double seconds = 0;
  int64_t samples = 0;  // of all ranks
  Phases phases;        // where `seconds` went on this rank
};

struct EvaluationRecord {
  int64_t epoch = 0;  // completed epochs
  int64_t step = 0;   // completed steps
  double loss = 0;
  double accuracy = 0;
  int64_t samples = 0;
};

// What the loop tells the outside, from the training thread. Implementations return quickly.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void OnStep(const StepRecord& record) = 0;
  virtual void OnEvaluation(const EvaluationRecord& record) = 0;
  // The gradients of this step (1-based) were not finite on some rank, so no rank applied them.
  virtual void OnSkippedStep(int64_t step) = 0;
  // Once, before the first step: `step` steps and `samples_consumed` samples were done before this
  // process took part; 0 for a fresh start.
  virtual void OnResume(int64_t step, int64_t samples_consumed) = 0;
  // Every batch of a step that is done, or of an evaluation before it is used (audit, dump). For
  // training batches `digest` of the whole job follows in OnDigest.
  virtual void OnBatch(const feed::Batch& batch) = 0;
  // After each step: the whole job's stream digest and consumed samples so far.
  virtual void OnDigest(uint64_t high, uint64_t low, int64_t samples_consumed) = 0;
  virtual void OnPhases(const Phases& phases, double train_seconds) = 0;
  // CRC32C over all parameters and buffers, after each epoch; equal on all ranks or training fails.
  virtual void OnEpochEnd(int64_t epoch, uint32_t parameter_crc) = 0;
  // Rank 0: a checkpoint is complete, or could not be written and training goes on.
  virtual void OnCheckpoint(const std::string& uri, int64_t step) = 0;
  virtual void OnCheckpointProblem(const std::string& problem) = 0;
  // The rate of all ranks without input, once, before the first step; only when it is probed.
  virtual void OnCeiling(double samples_per_second) = 0;
};

struct TrainerOptions {
  api::HeteroTrainingJob job;
  int32_t rank = 0;
  int32_t world_size = 1;
  int64_t generation = 0;  // set by RunTrainer
  std::string run;         // unique per run of the job; the same after restarts inside one
  std::string member;      // "gpu-0", for messages
  int threads = 1;         // intra-op threads of LibTorch
  int32_t classes = 0;     // of the dataset
  int64_t samples = 0;     // of the training split
  std::string dataset_fingerprint;
  api::ImageShape input;  // of one sample on the wire, uint8 HWC
  pipeline::TensorConversion conversion;
  // Before training (ceiling_probe.h); 0: none. On all ranks alike.
  int32_t ceiling_probe_steps = 0;
  bool gpu = false;  // train on the first GPU that this process sees
  // Rank 0 writes the trained weights there as model.safetensors; empty: nobody does.
  std::string output_folder;
};

// Trains the whole schedule: builds the model, resumes from a checkpoint or from the other ranks'
// state, forms the process group, steps, evaluates. When ranks are lost, waits for the next
// generation and goes on in place. Returns OK after the last step, kCancelled when `stop` ended it
// (all ranks agree on the step, and rank 0 leaves a checkpoint), else what went wrong. `stop` is
// looked at between steps, and cuts waits for batches and peers short: a second after the request
// this rank's connections are shut down. Several ranks in one process are for tests and need
// TORCH_FR_BUFFER_SIZE=0 in the environment, because LibTorch's flight recorder is not safe then.
absl::Status RunTrainer(const TrainerOptions& options, const job::Schedule& schedule,
                        BatchSource& batches, Generations& generations, Observer& observer,
                        base::Clock& clock, std::stop_token stop);

}  // namespace hetero::train
