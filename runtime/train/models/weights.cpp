#include "runtime/train/models/weights.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/atomic_file.h"
#include "base/status_macros.h"
#include "runtime/feed/safetensors.h"
#include "runtime/train/models/named_tensors.h"
#include "runtime/train/models/tensor_names.h"

namespace hetero::train {
namespace {

using feed::TensorType;

constexpr std::pair<TensorType, torch::ScalarType> kElementTypes[] = {
    {TensorType::kUint8, torch::kUInt8},       {TensorType::kInt32, torch::kInt32},
    {TensorType::kInt64, torch::kInt64},       {TensorType::kFloat32, torch::kFloat32},
    {TensorType::kFloat64, torch::kFloat64},   {TensorType::kFloat16, torch::kFloat16},
    {TensorType::kBfloat16, torch::kBFloat16}, {TensorType::kBool, torch::kBool}};

constexpr int64_t kWidestElement = 8;  // bytes
// What a file may have beyond the model's own size: a last layer for many more classes.
constexpr int64_t kMostExcluded = int64_t{1} << 30;

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

// Every difference at once, the first few in words.
class Differences {
 public:
  void Add(std::string text) {
    ++count_;
    if (texts_.size() < kShown) texts_.push_back(std::move(text));
  }
  absl::Status ToStatus(const std::string& path) const {
    if (count_ == 0) return absl::OkStatus();
    const size_t hidden = count_ - texts_.size();
    return absl::FailedPreconditionError(absl::StrCat(
        path, " does not fit the model: ", absl::StrJoin(texts_, "; "),
        hidden == 0 ? "" : absl::StrCat("; and ", hidden, " more"),
        ". Names and shapes must be those of the model; check spec.training.model.name, "
        "spec.dataset.classes and the picture size, or name layers that are to begin anew, such as "
        "the last one, in spec.training.model.exclude"));
  }

 private:
  static constexpr size_t kShown = 8;
  size_t count_ = 0;
  std::vector<std::string> texts_;
};

torch::Tensor ViewOf(const feed::Tensor& stored) {
  const auto* type = std::find_if(std::begin(kElementTypes), std::end(kElementTypes),
                                  [&](const auto& t) { return t.first == stored.type; });
  // from_blob wants mutable bytes; they are only read.
  return torch::from_blob(const_cast<uint8_t*>(stored.data.data()), stored.shape, type->second);
}

// Of the model's tensors and the file's: either may have some that the other lacks.
absl::StatusOr<std::set<std::string>> Excluded(const std::vector<std::string>& patterns,
                                               const NamedTensors& tensors,
                                               const feed::SafetensorsFile& file) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  for (const auto& [name, stored] : file.tensors) names.push_back(name);
  std::set<std::string> excluded;
  HETERO_RETURN_IF_ERROR(ChooseTensors("spec.training.model.exclude", patterns, names,
                                       [&](size_t i) { excluded.insert(names[i]); }));
  const bool all = std::all_of(tensors.begin(), tensors.end(),
                               [&](const auto& entry) { return excluded.contains(entry.first); });
  if (!all) return excluded;
  return absl::InvalidArgumentError(
      "spec.training.model.exclude: names all of the model's tensors; leave out weights instead");
}

}  // namespace

absl::Status LoadWeights(Model& model, const std::string& path,
                         const std::vector<std::string>& exclude) {
  const NamedTensors tensors = ModelTensors(model);
  int64_t limit = feed::kMaxSafetensorsHeader;
  for (const auto& [name, tensor] : tensors) limit += tensor.numel() * kWidestElement;
  if (!exclude.empty()) limit += kMostExcluded;
  HETERO_ASSIGN_OR_RETURN(const feed::SafetensorsFile file, feed::ReadSafetensors(path, limit));
  HETERO_ASSIGN_OR_RETURN(const std::set<std::string> excluded, Excluded(exclude, tensors, file));
  Differences differences;
  std::map<std::string, const feed::Tensor*> unused;
  for (const auto& [name, stored] : file.tensors) {
    if (!excluded.contains(name)) unused[name] = &stored;
  }
  std::vector<std::pair<torch::Tensor, const feed::Tensor*>> copies;
  for (const auto& [name, tensor] : tensors) {
    if (excluded.contains(name)) continue;
    const auto found = unused.find(name);
    if (found == unused.end()) {
      if (!absl::EndsWith(name, "num_batches_tracked")) {
        differences.Add(absl::StrCat("\"", name, "\" ", ShapeText(tensor.sizes().vec()),
                                     " is missing in the file"));
      }
      continue;
    }
    if (found->second->shape != tensor.sizes().vec()) {
      differences.Add(absl::StrCat("\"", name, "\" is ", ShapeText(found->second->shape),
                                   " in the file and ", ShapeText(tensor.sizes().vec()),
                                   " in the model"));
    }
    copies.emplace_back(tensor, found->second);
    unused.erase(found);
  }
  for (const auto& [name, stored] : unused) {
    differences.Add(absl::StrCat("\"", name, "\" ", ShapeText(stored->shape),
                                 " of the file is not in the model"));
  }
  HETERO_RETURN_IF_ERROR(differences.ToStatus(path));
  torch::NoGradGuard no_grad;
  for (auto& [tensor, stored] : copies) tensor.copy_(ViewOf(*stored));
  return absl::OkStatus();
}

absl::Status SaveWeights(const Model& model, const std::string& path) {
  return base::WriteFileAtomically(
      path, TensorFileBytes(CopyOf(ModelTensors(model)), {{"format", "pt"}}));
}

}  // namespace hetero::train
