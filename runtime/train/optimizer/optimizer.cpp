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
  ZeroGradients();
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
  for (const torch::Tensor& parameter : parameters_) gradients.push_back(parameter.grad());
  return gradients;
}

// LibTorch's fused kernels copy operands that are not contiguous in the usual order, there and back
// again: with channels last that costs more than the update. Element by element the order does not
// matter, so they are given the memory as it lies. The parameters' stays where it is, and so do
// gradients in DataParallel's buckets; others are mostly given the same memory in every step.
const Optimizer::Operands& Optimizer::Flat() {
  std::vector<const void*> memory;
  memory.reserve(2 * parameters_.size());
  for (const torch::Tensor& parameter : parameters_) {
    memory.insert(memory.end(), {parameter.data_ptr(), parameter.grad().data_ptr()});
  }
  if (memory == flat_memory_) return flat_;
  flat_memory_ = std::move(memory);
  flat_ = {parameters_, Gradients(), first_moments_, second_moments_};
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto matches = [&](const std::vector<torch::Tensor>& tensors) {
      return tensors.empty() || SameDenseLayout(parameters_[i], tensors[i]);
    };
    if (!matches(flat_.gradients) || !matches(first_moments_) || !matches(second_moments_))
      continue;
    for (std::vector<torch::Tensor>* tensors :
         {&flat_.parameters, &flat_.gradients, &flat_.first_moments, &flat_.second_moments}) {
      if (!tensors->empty()) (*tensors)[i] = FlatView((*tensors)[i]);
    }
  }
  return flat_;
}

void Optimizer::ZeroGradients() {
  CompleteGradients();
  torch::NoGradGuard no_grad;
  at::_foreach_zero_(Gradients());
}

void Optimizer::DropGradients() {
  for (torch::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
}

void Optimizer::CompleteGradients() {
  torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : parameters_) {
    if (!parameter.grad().defined()) parameter.mutable_grad() = torch::zeros_like(parameter);
  }
}

double Optimizer::GradientNorm() const {
  torch::NoGradGuard no_grad;
  return torch::stack(at::_foreach_norm(Gradients(), 2)).to(torch::kFloat64).norm().item<double>();
}

void Optimizer::ClipGradients(double norm, double max_norm) {
  const double factor = max_norm / (norm + 1e-6);
  if (factor >= 1) return;
  torch::NoGradGuard no_grad;
  at::_foreach_mul_(Gradients(), factor);
}

void Optimizer::Step(double learning_rate) {
  torch::NoGradGuard no_grad;
  const Operands& flat = Flat();
  switch (options_.name) {
    case api::OptimizerKind::kSgd:
      at::_fused_sgd_(flat.parameters, flat.gradients, flat.first_moments, options_.weight_decay,
                      options_.momentum, learning_rate, /*dampening=*/0.0, /*nesterov=*/false,
                      /*maximize=*/false, /*is_first_step=*/false);
      return;
    case api::OptimizerKind::kAdam:
      at::_foreach_add_(step_counts_, 1);
      at::_fused_adam_(flat.parameters, flat.gradients, flat.first_moments, flat.second_moments, {},
                       step_counts_, learning_rate, options_.betas[0], options_.betas[1],
                       options_.weight_decay, options_.epsilon, /*amsgrad=*/false,
                       /*maximize=*/false);
      return;
    case api::OptimizerKind::kAdamW:
      at::_foreach_add_(step_counts_, 1);
      at::_fused_adamw_(flat.parameters, flat.gradients, flat.first_moments, flat.second_moments,
                        {}, step_counts_, learning_rate, options_.betas[0], options_.betas[1],
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
