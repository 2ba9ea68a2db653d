#pragma once

#include <stop_token>
#include <vector>

#include "api/hetero_training_job.h"
#include "runtime/feed/batch_stream.h"
#include "runtime/train/data_parallel/data_parallel.h"
#include "runtime/train/device/input.h"
#include "runtime/train/models/model.h"
#include "runtime/train/pipeline_parallel/partition.h"
#include "runtime/train/pipeline_parallel/stage_link.h"
#include "runtime/train/process_group/agreement.h"
#include "runtime/train/process_group/gloo_group.h"
#include "runtime/train/progress/observer.h"
#include "runtime/train/progress/phase_clock.h"

namespace hetero::train {

// One rank's part in a pipeline. The first stage has the batches; images go in there, labels go
// straight to the last stage, which has the loss. Every stage knows how many samples each step has,
// so that no message says it. Belongs to one thread. Functions throw what LibTorch throws.
class PipelineStage {
 public:
  // All outlive this. `data_parallel` is null when there is but one pipeline.
  struct Collaborators {
    Model& model;  // this rank's partition
    const PartitionLayout& layout;
    const GlooGroup& group;
    DataParallel* data_parallel = nullptr;
    const InputConverter& input;
    const api::ImageShape& picture;
    const api::Training& training;
    PhaseClock& phases;
  };
  explicit PipelineStage(const Collaborators& collaborators);

  // Adds the gradients of the pipeline's `samples` of a step, in microbatches under 1F1B: their
  // losses times `scale`. `batch` is the first stage's; the others' is empty. Returns the sum of
  // the losses on the last stage, 0 on the others. Without samples the pipeline takes part with an
  // empty picture that counts nothing.
  double ComputeGradients(const feed::Batch& batch, int64_t samples, double scale);

  // As EvaluateShare, on all stages at once: the first takes the batches, the last has the sums.
  RankState Evaluate(int64_t batches, feed::BatchStream& stream, Observer& observer,
                     std::stop_token stop);

 private:
  // A microbatch on this stage between its forward and its backward.
  struct InFlight {
    torch::Tensor input;   // undefined on the first stage
    torch::Tensor output;  // the loss on the last stage
  };
  struct Step {
    const feed::Batch& batch;
    double scale = 0;
    bool empty = false;          // no sample is real
    std::vector<int64_t> sizes;  // of the microbatches
    std::vector<int64_t> first;  // sample of each
    torch::Tensor labels;        // of all, on the last stage
    std::vector<InFlight> in_flight;
    double loss = 0;
  };

  void Forward(Step& step, int64_t microbatch);
  void Backward(Step& step, int64_t microbatch);
  torch::Tensor ExchangeLabels(const feed::Batch& batch, int64_t samples);
  torch::Tensor Input(const feed::Batch& batch, int64_t first, int64_t count, int tag);
  torch::Tensor Run(const torch::Tensor& input);
  int64_t NextEvaluationBatch(feed::BatchStream& stream, std::stop_token stop,
                              std::unique_ptr<feed::Batch>& batch, RankState& sums);
  void EvaluateBatch(const feed::Batch& batch, int64_t samples, RankState& sums);

  Model& model_;
  const PartitionLayout& layout_;
  const PipelinePlace place_;
  DataParallel* data_parallel_;
  const InputConverter& input_;
  const api::ImageShape& picture_;
  const api::Training& training_;
  PhaseClock& phases_;
  StageLink link_;
};

}  // namespace hetero::train
