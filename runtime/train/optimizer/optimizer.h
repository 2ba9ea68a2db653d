#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "api/hetero_training_job.h"

namespace hetero::train {

// The update rules of torch.optim.SGD, Adam and AdamW in LibTorch's fused kernels. As there, a
// parameter without a gradient (it is frozen, or the loss does not depend on it) stays as it is,
// with its state: neither weight decay nor moments act on it. Belongs to one thread. Functions
// throw what LibTorch throws.
class Optimizer {
 public:
  Optimizer(const api::Optimizer& options, std::vector<torch::Tensor> parameters);

  // Who keeps the memory of gradients.
  enum class Keeper {
    kNobody,
    kBuckets,  // of DataParallel, which makes gradients views of them: next time at the same places
  };
  // Before backward, which keeps the first gradients that it computes (DataParallel copies them
  // into its buckets and makes them views of these); a gradient that is there already would be
  // cleared and added to, three times the memory traffic, and would count for a parameter that this
  // step does not use. What nobody else keeps is free memory afterwards.
  void DropGradients(Keeper keeper = Keeper::kNobody);
  // Clears those that there are, in place. Where several backwards add up what DataParallel reduces
  // with the last of them: its buckets are then the only memory of gradients.
  void ZeroGradients();
  // Euclidean norm over all gradients together; not finite when any gradient is not, 0 when there
  // are none.
  double GradientNorm() const;
  // Multiplies all gradients by max_norm / (norm + 1e-6) when that is below 1, as
  // torch.nn.utils.clip_grad_norm_ does.
  void ClipGradients(double norm, double max_norm);
  void Step(double learning_rate);

  // One tensor of the state, under torch's name for it: "momentum_buffer", "exp_avg", "exp_avg_sq",
  // "step". A view, not a copy.
  struct StateTensor {
    size_t parameter = 0;  // index of the parameter it belongs to
    std::string name;
    torch::Tensor values;
  };
  std::vector<StateTensor> state() const;

 private:
  // What the update kernels read and write, of the parameters that have a gradient: the tensors
  // themselves, or flat views of their memory.
  struct Operands {
    std::vector<torch::Tensor> parameters, gradients, first_moments, second_moments, step_counts;
  };

  std::vector<torch::Tensor> Gradients() const;
  Operands Present() const;
  const Operands& Flat();

  api::Optimizer options_;
  std::vector<torch::Tensor> parameters_;
  std::vector<torch::Tensor> first_moments_;   // SGD: momentum
  std::vector<torch::Tensor> second_moments_;  // Adam, AdamW
  std::vector<torch::Tensor> step_counts_;     // Adam, AdamW; float32 scalars
  Operands flat_;
  std::vector<const void*> flat_memory_;  // of the parameters and gradients that flat_ was made for
};

}  // namespace hetero::train
