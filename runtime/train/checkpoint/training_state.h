#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/feed/wire/batch.h"
#include "runtime/job/stream_digest.h"
#include "runtime/train/models/model.h"
#include "runtime/train/optimizer/optimizer.h"
#include "runtime/train/progress/observer.h"

namespace hetero::train {

// How far the job is; the same on all ranks between steps.
struct Standing {
  int64_t step = 0;            // optimiser steps done
  int64_t evaluated_step = 0;  // steps done at the latest completed evaluation; 0: none
  job::StreamDigest digest;    // of the samples of these steps, over all ranks
  int64_t samples_consumed = 0;
};

// A step that is done here but whose loss is not known over all ranks yet. It travels with the next
// exchange.
struct PendingStep {
  StepRecord record;
  double loss = 0;  // sum over this rank's samples
  int64_t samples = 0;
};

// Everything that one rank carries from step to step, and from one generation to the next. Between
// Begin() and Commit() or Abort() a step is under way. Belongs to one thread; functions throw what
// LibTorch throws.
class TrainingState {
 public:
  TrainingState(std::shared_ptr<Model> model, const api::Optimizer& optimizer);

  Model& model() { return *model_; }
  const Model& model() const { return *model_; }
  Optimizer& optimizer() { return optimizer_; }
  const Optimizer& optimizer() const { return optimizer_; }

  // The buffers as they are now are those of the last committed step.
  void Begin();
  void Commit() { under_way_ = false; }
  // Gives the buffers back their values of Begin(), when a step is under way.
  void Abort();

  Standing standing;
  // Whether the tensors are those of `standing`: false in a new process until it has received or
  // loaded them.
  bool established = false;
  // Whether they may differ from those of a model that was just built.
  bool touched = false;
  std::optional<PendingStep> pending;
  std::unique_ptr<feed::Batch> held;  // taken from the stream for a step that is not done

 private:
  std::shared_ptr<Model> model_;
  Optimizer optimizer_;
  std::vector<torch::Tensor> buffers_;
  std::vector<torch::Tensor> saved_buffers_;
  bool under_way_ = false;
};

}  // namespace hetero::train
