#include "runtime/train/data_parallel/data_parallel.h"

#include <numeric>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <tuple>
#include <unordered_map>

#include "runtime/train/process_group/exceptions.h"

namespace hetero::train {
namespace {

// PyTorch's defaults: a small first bucket starts the first transfer early.
constexpr size_t kFirstBucketBytes = size_t{1} << 20;
constexpr size_t kBucketBytes = size_t{25} << 20;
constexpr size_t kBroadcastBytes = size_t{250} << 20;

std::vector<torch::Tensor> Trained(const Model& model) {
  std::vector<torch::Tensor> trained;
  for (const torch::Tensor& parameter : model.parameters()) {
    if (parameter.requires_grad()) trained.push_back(parameter);
  }
  return trained;
}

// As many gradients as fit into each bucket, the last layer's first: the order in which backward
// runs.
std::vector<std::vector<size_t>> BucketsOf(const std::vector<torch::Tensor>& parameters) {
  std::vector<torch::Tensor> last_first(parameters.rbegin(), parameters.rend());
  std::vector<int64_t> indices(parameters.size());
  std::iota(indices.rbegin(), indices.rend(), int64_t{0});
  return std::get<0>(c10d::compute_bucket_assignment_by_size(
      last_first, {kFirstBucketBytes, kBucketBytes}, std::vector<bool>(parameters.size(), false),
      indices));
}

}  // namespace

// Keeps the buckets it was made with. LibTorch's rearranges them after its first step, by the
// moments at which gradients came. But where in its bucket a gradient lies decides in which order
// Gloo's ring sums the values of the ranks: of three or more, the sum would depend on how many
// steps this Reducer has made, which is since when the group stands (docs/decisions/0039).
class DataParallel::Reducer : public c10d::Reducer {
 public:
  Reducer(const std::vector<torch::Tensor>& parameters,
          std::unordered_map<size_t, std::string> names, GlooGroup& group, bool find_unused)
      : c10d::Reducer(parameters, BucketsOf(parameters), group.gradients(),
                      std::vector<bool>(parameters.size(), false),
                      static_cast<int64_t>(kBucketBytes), find_unused,
                      /*gradient_as_bucket_view=*/true, std::move(names),
                      static_cast<int64_t>(kFirstBucketBytes),
                      /*skip_all_reduce_unused_params=*/false,
                      /*use_python_reducer=*/false, std::vector<int64_t>{}) {
    has_rebuilt_bucket_ = true;
  }
};

namespace {

// The Reducer advises Python's users against looking for unused parameters where there are none.
class Silence : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

std::unordered_map<size_t, std::string> NamesOfTrained(const Model& model) {
  std::unordered_map<size_t, std::string> names;
  for (const auto& parameter : model.named_parameters()) {
    if (parameter.value().requires_grad()) names.emplace(names.size(), parameter.key());
  }
  return names;
}

}  // namespace

void BroadcastTensors(GlooGroup& group, const std::vector<torch::Tensor>& tensors, int32_t root) {
  if (tensors.empty() || !group.gradients()) return;
  torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> detached;
  detached.reserve(tensors.size());
  for (const torch::Tensor& tensor : tensors) detached.push_back(tensor.detach());
  Collectively(
      [&] { c10d::broadcast_coalesced(group.gradients(), detached, kBroadcastBytes, root); });
}

void CheckSameShapes(GlooGroup& group, const Model& model) {
  if (!group.gradients()) return;
  Collectively([&] {
    c10d::verify_params_across_processes(group.gradients(), model.parameters(), std::nullopt);
  });
}

DataParallel::DataParallel(Model& model, GlooGroup& group, base::Clock& clock,
                           bool may_leave_unused, std::function<void()> on_gradient)
    : group_(group), clock_(clock), buffers_(model.buffers()) {
  const std::vector<torch::Tensor> trained = Trained(model);
  reducer_ = std::make_unique<Reducer>(trained, NamesOfTrained(model), group, may_leave_unused);
  for (const torch::Tensor& parameter : trained) {
    const unsigned hook = parameter.register_hook([this, on_gradient](torch::Tensor) {
      gradients_ready_ = clock_.Now();
      if (on_gradient) on_gradient();
    });
    hooks_.emplace_back(parameter, hook);
  }
}

// The model outlives this and trains on in the next generation.
DataParallel::~DataParallel() {
  for (const auto& [parameter, hook] : hooks_) parameter.remove_hook(hook);
}

void DataParallel::BroadcastBuffers() { BroadcastTensors(group_, buffers_, 0); }

// Of a Reducer that has rebuilt its buckets, this only checks that the backward before was whole.
void DataParallel::BeforeForward() {
  reducer_->prepare_for_forward();
  reducer_->rebuild_buckets();
}

void DataParallel::BeforeBackward(const torch::Tensor& output) {
  Silence silence;
  const c10::WarningUtils::WarningHandlerGuard guard(&silence);
  reducer_->prepare_for_backward({output});
}

}  // namespace hetero::train
