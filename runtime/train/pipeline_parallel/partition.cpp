#include "runtime/train/pipeline_parallel/partition.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hetero::train {
namespace {

absl::Status Refuse(absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat("spec.training.parallelism.partitions: ", reason));
}

// A module that is there for the names of what is below it.
class NameScope : public torch::nn::Module {
 public:
  static void Place(torch::nn::Module& scope, const std::string& name,
                    const torch::Tensor& parameter) {
    const size_t dot = name.find('.');
    if (dot == std::string::npos) {
      scope.register_parameter(name, parameter, parameter.requires_grad());
      return;
    }
    const std::string child = name.substr(0, dot);
    const auto children = scope.named_children();
    const std::shared_ptr<torch::nn::Module>* found = children.find(child);
    const std::shared_ptr<torch::nn::Module> next =
        found != nullptr ? *found : scope.register_module(child, std::make_shared<NameScope>());
    Place(*next, name.substr(dot + 1), parameter);
  }
};

// Consecutive layers of a model, which it keeps.
class PartitionModel : public Model {
 public:
  PartitionModel(std::shared_ptr<Model> whole, std::vector<ModelStage> layers)
      : whole_(std::move(whole)), layers_(std::move(layers)) {}

  void Place(const std::string& name, const torch::Tensor& parameter) {
    NameScope::Place(*this, name, parameter);
  }
  torch::Tensor forward(torch::Tensor x) override {
    for (const ModelStage& layer : layers_) x = layer.forward(std::move(x));
    return x;
  }
  void train(bool on = true) override {
    torch::nn::Module::train(on);
    whole_->train(on);
  }
  bool channels_last() const override { return whole_->channels_last(); }

 private:
  const std::shared_ptr<Model> whole_;
  const std::vector<ModelStage> layers_;
};

int64_t ElementsOf(const ModelStage& layer) {
  int64_t elements = 0;
  for (const torch::Tensor& parameter : layer.parameters) elements += parameter.numel();
  return elements;
}

// The layer of each parameter, which must be exactly one.
absl::StatusOr<std::unordered_map<const void*, size_t>> OwnersOf(
    const std::vector<ModelStage>& layers) {
  std::unordered_map<const void*, size_t> owners;
  for (size_t i = 0; i < layers.size(); ++i) {
    for (const torch::Tensor& parameter : layers[i].parameters) {
      const auto [owner, is_new] = owners.emplace(parameter.unsafeGetTensorImpl(), i);
      if (!is_new && owner->second != i) {
        return Refuse(absl::StrCat("layers ", owner->second, " and ", i,
                                   " of the model share a parameter, which cannot be cut; use 1"));
      }
    }
  }
  return owners;
}

std::vector<int64_t> ShapeAfter(const std::vector<ModelStage>& layers, size_t count,
                                const api::ImageShape& input) {
  torch::NoGradGuard no_grad;
  torch::Tensor x = torch::zeros({1, input.channels, input.height, input.width});
  for (size_t i = 0; i < count; ++i) x = layers[i].forward(std::move(x));
  return x.sizes().slice(1).vec();
}

}  // namespace

std::vector<size_t> BalancedCuts(const std::vector<int64_t>& weights, int32_t partitions) {
  const size_t layers = weights.size();
  const auto parts = static_cast<size_t>(partitions);
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  // heaviest[k][n]: of the heaviest of k partitions of the first n layers, when cut best;
  // cut[k][n]: where its last partition begins.
  std::vector<std::vector<int64_t>> heaviest(parts + 1, std::vector<int64_t>(layers + 1, kNever));
  std::vector<std::vector<size_t>> cut(parts + 1, std::vector<size_t>(layers + 1, 0));
  heaviest[0][0] = 0;
  for (size_t k = 1; k <= parts; ++k) {
    for (size_t n = k; n <= layers; ++n) {
      int64_t last = 0;
      for (size_t begin = n; begin-- >= k;) {
        last += weights[begin];
        const int64_t value = std::max(heaviest[k - 1][begin], last);
        if (value < heaviest[k][n]) {
          heaviest[k][n] = value;
          cut[k][n] = begin;
        }
      }
    }
  }
  std::vector<size_t> cuts(parts + 1, layers);
  for (size_t k = parts; k > 0; --k) cuts[k - 1] = cut[k][cuts[k]];
  return cuts;
}

absl::StatusOr<RankModel> CutModel(std::shared_ptr<Model> whole, const PipelinePlace& place,
                                   const api::ImageShape& input) {
  std::vector<ModelStage> layers = whole->stages();
  if (layers.empty()) return Refuse("the model has no cut points; use 1");
  if (layers.size() < static_cast<size_t>(place.partitions)) {
    return Refuse(absl::StrCat("the model can be cut into ", layers.size(),
                               " partitions at most, not into ", place.partitions));
  }
  if (whole->has_batch_norm() || !whole->buffers().empty()) {
    return Refuse(
        "the model keeps statistics over batches, which microbatches would change; use 1");
  }
  HETERO_ASSIGN_OR_RETURN(const auto owners, OwnersOf(layers));

  std::vector<int64_t> weights;
  for (const ModelStage& layer : layers) weights.push_back(ElementsOf(layer));
  const std::vector<size_t> cuts = BalancedCuts(weights, place.partitions);
  const auto stage = static_cast<size_t>(place.stage);
  auto layout = std::make_shared<PartitionLayout>();
  if (!place.first()) layout->activation = ShapeAfter(layers, cuts[stage], input);

  auto part = std::make_shared<PartitionModel>(
      whole,
      std::vector<ModelStage>(layers.begin() + static_cast<std::ptrdiff_t>(cuts[stage]),
                              layers.begin() + static_cast<std::ptrdiff_t>(cuts[stage + 1])));
  for (const auto& entry : whole->named_parameters()) {
    const auto owner = owners.find(entry.value().unsafeGetTensorImpl());
    if (owner == owners.end()) {
      return Refuse(absl::StrCat("parameter ", entry.key(), " belongs to no layer of the model"));
    }
    const auto after = std::upper_bound(cuts.begin(), cuts.end(), owner->second);
    const auto partition = static_cast<int32_t>(after - cuts.begin()) - 1;
    layout->parameters.push_back(entry.key());
    layout->partition[entry.key()] = partition;
    torch::Tensor parameter = entry.value();
    if (partition == place.stage) {
      part->Place(entry.key(), parameter);
    } else {
      parameter.set_data(torch::empty({0}));
    }
  }
  return RankModel{.model = std::move(part), .layout = std::move(layout)};
}

}  // namespace hetero::train
