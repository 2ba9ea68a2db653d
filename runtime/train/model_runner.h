#pragma once

#include <memory>
#include <stop_token>

#include "runtime/train/data_parallel/data_parallel.h"
#include "runtime/train/device/device.h"
#include "runtime/train/device/input.h"
#include "runtime/train/models/model.h"
#include "runtime/train/optimizer/optimizer.h"
#include "runtime/train/pipeline_parallel/partition.h"
#include "runtime/train/pipeline_parallel/pipeline_stage.h"
#include "runtime/train/process_group/agreement.h"
#include "runtime/train/process_group/gloo_group.h"
#include "runtime/train/process_group/pipeline_place.h"
#include "runtime/train/progress/observer.h"
#include "runtime/train/progress/phase_clock.h"
#include "runtime/train/trainer_options.h"

namespace hetero::train {

// What one rank computes with its model, or with its partition of it: gradients of a step's samples
// and losses of the validation samples. Belongs to one thread. Functions throw what LibTorch
// throws.
class ModelRunner {
 public:
  struct Collaborators {
    Model& model;
    Optimizer& optimizer;                     // of the model's parameters
    GlooGroup* group = nullptr;               // null for a job of one rank
    const PartitionLayout* layout = nullptr;  // null without partitions
    Agreement& agreement;
    PhaseClock& phases;
    Device& device;
  };
  // Everything named here outlives this.
  ModelRunner(const TrainerOptions& options, const Collaborators& collaborators,
              base::Clock& clock);

  // Leaves the gradients of the step's `samples` in the parameters, their losses times `scale`,
  // reduced over the ranks. `samples` are those of this rank, or of its pipeline; `batch` is what
  // this rank has of them. Returns the sum of the losses that this rank computed.
  double ComputeGradients(const feed::Batch& batch, int64_t samples, double scale);
  // Of the whole model. Each pipeline holds the same gradients.
  double GradientNorm();
  // Gives all ranks that train the same parameters rank 0's buffers, or its pipeline's: before a
  // step is committed.
  void BroadcastBuffers();

  // See EvaluateShare.
  RankState Evaluate(int64_t batches, feed::BatchStream& stream, Observer& observer,
                     std::stop_token stop);

 private:
  // Samples that go through the model together. `ownership` sums to the number of real ones.
  struct Piece {
    torch::Tensor images, labels, ownership;
    bool padded = false;
  };

  double AddGradients(const feed::Batch& batch, double scale);
  Piece MakePiece(const feed::Batch& batch, int64_t first, int64_t count) const;
  double RunPiece(const Piece& piece, double scale, bool reduce);
  void ChargePiece(base::Instant after_forward, bool reduce);

  const api::Training& training_;
  const api::ImageShape picture_;
  const PipelinePlace place_;
  Model& model_;
  Optimizer& optimizer_;
  Agreement& agreement_;
  PhaseClock& phases_;
  base::Clock& clock_;
  Device& device_;
  InputConverter input_;
  std::unique_ptr<DataParallel> data_parallel_;  // null when nobody else trains these parameters
  std::unique_ptr<PipelineStage> stage_;         // null without partitions
};

}  // namespace hetero::train
