#include "runtime/train/data_parallel/data_parallel.h"

#include <algorithm>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

namespace hetero::train {
namespace {

// PyTorch's defaults: a small first bucket starts the first transfer early.
constexpr size_t kFirstBucketBytes = size_t{1} << 20;
constexpr size_t kBucketBytes = size_t{25} << 20;
constexpr size_t kBroadcastBytes = size_t{250} << 20;

std::unique_ptr<c10d::Reducer> MakeReducer(Model& model, GlooGroup& group) {
  std::vector<torch::Tensor> parameters;
  std::unordered_map<size_t, std::string> names;
  for (const auto& parameter : model.named_parameters()) {
    names[parameters.size()] = parameter.key();
    parameters.push_back(parameter.value());
  }
  const std::vector<bool> sparse(parameters.size(), false);
  auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
      parameters, {kFirstBucketBytes, kBucketBytes}, sparse);
  // Backward runs from the last layer to the first; the Reducer puts the buckets into the true
  // order after the first step.
  std::reverse(buckets.begin(), buckets.end());
  return std::make_unique<c10d::Reducer>(
      parameters, buckets, group.gradients(), sparse, static_cast<int64_t>(kBucketBytes),
      /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/true, names,
      static_cast<int64_t>(kFirstBucketBytes), /*skip_all_reduce_unused_params=*/false,
      /*use_python_reducer=*/false, std::vector<int64_t>{});
}

}  // namespace

void BroadcastTensors(GlooGroup& group, const std::vector<torch::Tensor>& tensors, int32_t root) {
  if (tensors.empty() || !group.gradients()) return;
  torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> detached;
  detached.reserve(tensors.size());
  for (const torch::Tensor& tensor : tensors) detached.push_back(tensor.detach());
  c10d::broadcast_coalesced(group.gradients(), detached, kBroadcastBytes, root);
}

void CheckSameShapes(GlooGroup& group, const Model& model) {
  if (!group.gradients()) return;
  c10d::verify_params_across_processes(group.gradients(), model.parameters(), std::nullopt);
}

DataParallel::DataParallel(Model& model, GlooGroup& group, base::Clock& clock)
    : group_(group), clock_(clock), buffers_(model.buffers()) {
  reducer_ = MakeReducer(model, group);
  for (const torch::Tensor& parameter : model.parameters()) {
    const unsigned hook =
        parameter.register_hook([this](torch::Tensor) { gradients_ready_ = clock_.Now(); });
    hooks_.emplace_back(parameter, hook);
  }
}

// The model outlives this and trains on in the next generation.
DataParallel::~DataParallel() {
  for (const auto& [parameter, hook] : hooks_) parameter.remove_hook(hook);
}

void DataParallel::BroadcastBuffers() { BroadcastTensors(group_, buffers_, 0); }

void DataParallel::BeforeForward() {
  reducer_->prepare_for_forward();
  reducer_->rebuild_buckets();
}

void DataParallel::BeforeBackward() { reducer_->prepare_for_backward({}); }

}  // namespace hetero::train
