#include "runtime/train/checkpoint/training_state.h"

#include <utility>

namespace hetero::train {

TrainingState::TrainingState(std::shared_ptr<Model> model, const api::Optimizer& optimizer)
    : model_(std::move(model)),
      optimizer_(optimizer, model_->parameters()),
      buffers_(model_->buffers()) {
  for (const torch::Tensor& buffer : buffers_) saved_buffers_.push_back(buffer.clone());
}

void TrainingState::Begin() {
  torch::NoGradGuard no_grad;
  for (size_t i = 0; i < buffers_.size(); ++i) saved_buffers_[i].copy_(buffers_[i]);
  under_way_ = true;
  touched = true;
}

void TrainingState::Abort() {
  if (!under_way_) return;
  torch::NoGradGuard no_grad;
  for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(saved_buffers_[i]);
  under_way_ = false;
}

}  // namespace hetero::train
