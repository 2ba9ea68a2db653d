#include "runtime/train/optimizer/optimizer.h"

#include <algorithm>

namespace hetero::train {
namespace {

std::vector<torch::Tensor> ZerosLike(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> zeros;
  zeros.reserve(tensors.size());
  for (const torch::Tensor& tensor : tensors) zeros.push_back(torch::zeros_like(tensor));
  return zeros;
}

// Whether the elements of both fill their memory without gaps in the same order.
bool SameDenseLayout(const torch::Tensor& a, const torch::Tensor& b) {
  return a.strides() == b.strides() && a.is_non_overlapping_and_dense() &&
         b.is_non_overlapping_and_dense();
}

torch::Tensor FlatView(const torch::Tensor& tensor) {
  return tensor.detach().as_strided({tensor.numel()}, {1});
}

}  // namespace

Optimizer::Optimizer(const api::Optimizer& options, std::vector<torch::Tensor> parameters)
    : options_(options), parameters_(std::move(parameters)) {
  torch::NoGradGuard no_grad;
  if (options_.name == api::OptimizerKind::kSgd) {
    if (options_.momentum != 0) first_moments_ = ZerosLike(parameters_);
    return;
  }
  first_moments_ = ZerosLike(parameters_);
  second_moments_ = ZerosLike(parameters_);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    step_counts_.push_back(
        torch::zeros({}, torch::device(parameters_[i].device()).dtype(torch::kFloat32)));
  }
}

std::vector<torch::Tensor> Optimizer::Gradients() const {
  std::vector<torch::Tensor> gradients;
  gradients.reserve(parameters_.size());
  for (const torch::Tensor& parameter : parameters_) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  return gradients;
}

Optimizer::Operands Optimizer::Present() const {
  Operands present;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].grad().defined()) continue;
    present.parameters.push_back(parameters_[i]);
    present.gradients.push_back(parameters_[i].grad());
    if (!first_moments_.empty()) present.first_moments.push_back(first_moments_[i]);
    if (!second_moments_.empty()) present.second_moments.push_back(second_moments_[i]);
    if (!step_counts_.empty()) present.step_counts.push_back(step_counts_[i]);
  }
  return present;
}

// LibTorch's fused kernels copy operands that are not contiguous in the usual order, there and back
// again: with channels last that costs more than the update. Element by element the order does not
// matter, so they are given the memory as it lies. The parameters' stays where it is, and so do
// gradients in DataParallel's buckets.
const Optimizer::Operands& Optimizer::Flat() {
  std::vector<const void*> memory;
  memory.reserve(2 * parameters_.size());
  for (const torch::Tensor& parameter : parameters_) {
    const torch::Tensor& gradient = parameter.grad();
    memory.insert(memory.end(), {parameter.const_data_ptr(),
                                 gradient.defined() ? gradient.const_data_ptr() : nullptr});
  }
  if (memory == flat_memory_) return flat_;
  flat_memory_ = std::move(memory);
  flat_ = Present();
  for (size_t i = 0; i < flat_.parameters.size(); ++i) {
    const auto matches = [&](const std::vector<torch::Tensor>& tensors) {
      return tensors.empty() || SameDenseLayout(flat_.parameters[i], tensors[i]);
    };
    if (!matches(flat_.gradients) || !matches(flat_.first_moments) ||
        !matches(flat_.second_moments)) {
      continue;
    }
    for (std::vector<torch::Tensor>* tensors :
         {&flat_.parameters, &flat_.gradients, &flat_.first_moments, &flat_.second_moments}) {
      if (!tensors->empty()) (*tensors)[i] = FlatView((*tensors)[i]);
    }
  }
  return flat_;
}

void Optimizer::DropGradients(Keeper keeper) {
  for (torch::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
  if (keeper == Keeper::kBuckets) return;
  flat_ = {};
  flat_memory_.clear();
}

void Optimizer::ZeroGradients() {
  torch::NoGradGuard no_grad;
  const std::vector<torch::Tensor> gradients = Gradients();
  if (!gradients.empty()) at::_foreach_zero_(gradients);
}

double Optimizer::GradientNorm() const {
  torch::NoGradGuard no_grad;
  const std::vector<torch::Tensor> gradients = Gradients();
  if (gradients.empty()) return 0;
  return torch::stack(at::_foreach_norm(gradients, 2)).to(torch::kFloat64).norm().item<double>();
}

void Optimizer::ClipGradients(double norm, double max_norm) {
  const double factor = max_norm / (norm + 1e-6);
  if (factor >= 1) return;  // so without any gradients too
  torch::NoGradGuard no_grad;
  at::_foreach_mul_(Gradients(), factor);
}

void Optimizer::Step(double learning_rate) {
  torch::NoGradGuard no_grad;
  const Operands& flat = Flat();
  if (flat.parameters.empty()) return;
  switch (options_.name) {
    case api::OptimizerKind::kSgd:
      at::_fused_sgd_(flat.parameters, flat.gradients, flat.first_moments, options_.weight_decay,
                      options_.momentum, learning_rate, /*dampening=*/0.0, /*nesterov=*/false,
                      /*maximize=*/false, /*is_first_step=*/false);
      return;
    case api::OptimizerKind::kAdam:
      at::_foreach_add_(flat.step_counts, 1);
      at::_fused_adam_(flat.parameters, flat.gradients, flat.first_moments, flat.second_moments, {},
                       flat.step_counts, learning_rate, options_.betas[0], options_.betas[1],
                       options_.weight_decay, options_.epsilon, /*amsgrad=*/false,
                       /*maximize=*/false);
      return;
    case api::OptimizerKind::kAdamW:
      at::_foreach_add_(flat.step_counts, 1);
      at::_fused_adamw_(flat.parameters, flat.gradients, flat.first_moments, flat.second_moments,
                        {}, flat.step_counts, learning_rate, options_.betas[0], options_.betas[1],
                        options_.weight_decay, options_.epsilon, /*amsgrad=*/false,
                        /*maximize=*/false);
      return;
  }
}

std::vector<Optimizer::StateTensor> Optimizer::state() const {
  const bool sgd = options_.name == api::OptimizerKind::kSgd;
  std::vector<StateTensor> state;
  const auto add = [&state](const char* name, const std::vector<torch::Tensor>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) state.push_back({i, name, tensors[i]});
  };
  add(sgd ? "momentum_buffer" : "exp_avg", first_moments_);
  add("exp_avg_sq", second_moments_);
  add("step", step_counts_);
  return state;
}

}  // namespace hetero::train
