#pragma once

#include <cstdint>
#include <string>

#include "runtime/feed/wire/batch.h"
#include "runtime/train/progress/phases.h"

namespace hetero::train {

// One optimiser step, as the whole job sees it.
struct StepRecord {
  int64_t step = 0;           // completed steps
  int64_t epoch = 0;          // 1-based, of this step
  int64_t step_in_epoch = 0;  // 1-based
  double loss = 0;            // mean over the step's samples of all ranks
  double seconds = 0;
  int64_t samples = 0;  // of all ranks
  Phases phases;        // where `seconds` went on this rank
};

// One pass over the validation samples, by all ranks together.
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
  // A step's computation begins with this batch; OnBatch follows when the step is done.
  virtual void OnComputation(const feed::Batch& batch) { (void)batch; }
  // After each step: the whole job's stream digest and consumed samples so far.
  virtual void OnDigest(uint64_t high, uint64_t low, int64_t samples_consumed) = 0;
  virtual void OnPhases(const Phases& phases, double train_seconds) = 0;
  // CRC32C over all parameters and buffers, after each epoch; equal on all ranks or training fails.
  virtual void OnEpochEnd(int64_t epoch, uint32_t parameter_crc) = 0;
  // Rank 0: a checkpoint is complete, or could not be written and training goes on.
  virtual void OnCheckpoint(const std::string& uri, int64_t step) = 0;
  virtual void OnCheckpointProblem(const std::string& problem) = 0;
  // What people who watch the job should read at once: one line.
  virtual void OnNotice(const std::string& line) { (void)line; }
  // The rate of all ranks without input, once, before the first step; only when it is probed.
  virtual void OnCeiling(double samples_per_second) = 0;
};

}  // namespace hetero::train
