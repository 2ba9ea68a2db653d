#include "runtime/train/optimizer.h"

#include <algorithm>

namespace hetero::train {
namespace {

std::vector<torch::Tensor> ZerosLike(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> zeros;
  zeros.reserve(tensors.size());
  for (const torch::Tensor& tensor : tensors) zeros.push_back(torch::zeros_like(tensor));
  return zeros;
}

}  // namespace

Optimizer::Optimizer(const api::Optimizer& options, std::vector<torch::Tensor> parameters)
    : options_(options), parameters_(std::move(parameters)) {
  torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : parameters_) {
    if (!parameter.grad().defined()) parameter.mutable_grad() = torch::zeros_like(parameter);
  }
  if (options_.name == api::OptimizerKind::kSgd) {
    if (options_.momentum != 0) first_moments_ = ZerosLike(parameters_);
    return;
  }
  first_moments_ = ZerosLike(parameters_);
  second_moments_ = ZerosLike(parameters_);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    step_counts_.push_back(torch::zeros({}, torch::kFloat32));
  }
}

std::vector<torch::Tensor> Optimizer::Gradients() const {
  std::vector<torch::Tensor> gradients;
  gradients.reserve(parameters_.size());
  for (const torch::Tensor& parameter : parameters_) gradients.push_back(parameter.grad());
  return gradients;
}

void Optimizer::ZeroGradients() {
  torch::NoGradGuard no_grad;
  at::_foreach_zero_(Gradients());
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
  std::vector<torch::Tensor> gradients = Gradients();
  switch (options_.name) {
    case api::OptimizerKind::kSgd:
      at::_fused_sgd_(parameters_, gradients, first_moments_, options_.weight_decay,
                      options_.momentum, learning_rate, /*dampening=*/0.0, /*nesterov=*/false,
                      /*maximize=*/false, /*is_first_step=*/false);
      return;
    case api::OptimizerKind::kAdam:
      at::_foreach_add_(step_counts_, 1);
      at::_fused_adam_(parameters_, gradients, first_moments_, second_moments_, {}, step_counts_,
                       learning_rate, options_.betas[0], options_.betas[1], options_.weight_decay,
                       options_.epsilon, /*amsgrad=*/false, /*maximize=*/false);
      return;
    case api::OptimizerKind::kAdamW:
      at::_foreach_add_(step_counts_, 1);
      at::_fused_adamw_(parameters_, gradients, first_moments_, second_moments_, {}, step_counts_,
                        learning_rate, options_.betas[0], options_.betas[1], options_.weight_decay,
                        options_.epsilon, /*amsgrad=*/false,
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
