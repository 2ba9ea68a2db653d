#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "runtime/train/models/model.h"
#include "runtime/train/process_group/gloo_group.h"

namespace hetero::train {

// Gives all ranks that train the same parameters the values of pipeline `root`'s, in place. Without
// partitions these are all ranks, and `root` is one of them.
void BroadcastTensors(GlooGroup& group, const std::vector<torch::Tensor>& tensors, int32_t root);

// Throws when models of ranks that should train the same parameters differ in shapes or types.
void CheckSameShapes(GlooGroup& group, const Model& model);

// Data parallel training of one model: LibTorch's Reducer sums gradients in buckets while backward
// still runs, in an order that the model and the ranks alone decide. Over the ranks that hold this
// model or this partition of it, of which there are several (group.gradients() is not null).
// Belongs to one thread; model, group and clock outlive it. Functions throw what LibTorch throws.
class DataParallel {
 public:
  // All ranks hold the same parameters and buffers. Parameters that need no gradient are left out;
  // with `may_leave_unused` there may also be some that a loss does not depend on: where that is so
  // on all ranks they keep no gradient, and otherwise those that do not use them count as zero.
  // `on_gradient`, where given, is called when work on a gradient was asked for, one after the
  // other on whichever thread runs backward.
  DataParallel(Model& model, GlooGroup& group, base::Clock& clock, bool may_leave_unused = false,
               std::function<void()> on_gradient = nullptr);
  ~DataParallel();

  // Gives all ranks rank 0's buffers. Before a step is committed: then every survivor holds those
  // of the whole job.
  void BroadcastBuffers();
  // Around a forward whose backward is to reduce gradients; leave both out where gradients are only
  // accumulated. Gradients come out as the mean over ranks. `output` is what backward begins at.
  void BeforeForward();
  void BeforeBackward(const torch::Tensor& output);

  // Moment at which this rank had computed its last gradient of the latest backward; what backward
  // took beyond it was waiting for the other ranks.
  base::Instant gradients_ready() const { return gradients_ready_; }

 private:
  class Reducer;

  GlooGroup& group_;
  base::Clock& clock_;
  std::vector<torch::Tensor> buffers_;
  std::vector<std::pair<torch::Tensor, unsigned>> hooks_;
  std::unique_ptr<Reducer> reducer_;
  base::Instant gradients_ready_{};
};

}  // namespace hetero::train
