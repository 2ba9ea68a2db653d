#include "runtime/feed/view_groups.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/views.h"
#include "base/status_macros.h"
#include "runtime/job/philox.h"
#include "runtime/pipeline/views.h"

namespace hetero::feed {

absl::StatusOr<ViewGroups> ViewGroups::Create(const api::Spec& spec, const source::Dataset& train,
                                              const pipeline::PythonFunctions* python) {
  constexpr int64_t kMostSamples = job::RandomStream::kMostIdsWithViews;
  if (api::HasSeveralViews(spec) && train.size() > kMostSamples) {
    return absl::InvalidArgumentError(absl::StrCat("spec.views: the dataset has ", train.size(),
                                                   " samples, with several views ", kMostSamples,
                                                   " at most"));
  }
  ViewGroups made;
  int32_t place = 0;
  for (const api::View& view : api::FurtherViews(spec)) {
    auto one =
        pipeline::Pipeline::Create(spec.pipeline, train.image(), job::Split::kTrain,
                                   base::Clock::Real(), /*first_position=*/0, view.name, python);
    if (!one.ok()) {
      return absl::Status(one.status().code(),
                          absl::StrCat("view ", view.name, ": ", one.status().message()));
    }
    const api::ImageShape shape = (*one)->output();
    Group group{.spec = {view.name, job::FieldType::kUint8, {}},
                .pipeline = pipeline::MakeViews(*std::move(one), ++place, view.count),
                .converts = IsConverted(spec.pipeline, view.name)};
    if (view.count > 1) group.spec.shape = {view.count};
    for (const int32_t size : {shape.height, shape.width, shape.channels}) {
      group.spec.shape.push_back(size);
    }
    made.groups_.push_back(std::move(group));
  }
  return made;
}

int64_t ViewGroups::bytes() const {
  int64_t bytes = 0;
  for (const Group& group : groups_) bytes += group.spec.bytes();
  return bytes;
}

job::FieldSet ViewGroups::With(const api::Label& label) const {
  job::FieldSet fields = job::FieldsOf(label);
  if (empty()) return fields;
  // Beside other tensors a class is one, too.
  if (!fields) fields = {{"label", job::FieldType::kInt64, {}}};
  for (const Group& group : groups_) fields->push_back(group.spec);
  std::sort(fields->begin(), fields->end(),
            [](const job::FieldSpec& a, const job::FieldSpec& b) { return a.name < b.name; });
  return fields;
}

absl::Status ViewGroups::Run(const source::RawSample& sample, const pipeline::SampleKey& key,
                             int64_t index, Batch* batch) const {
  for (const Group& group : groups_) {
    const auto field =
        std::find_if(batch->fields->begin(), batch->fields->end(),
                     [&group](const FieldTensor& f) { return f.spec.name == group.spec.name; });
    const std::span<uint8_t> out(field->of(index), static_cast<size_t>(group.spec.bytes()));
    HETERO_RETURN_IF_ERROR(group.pipeline->Run(sample, key, out));
  }
  return absl::OkStatus();
}

void ViewGroups::AddCosts(std::vector<pipeline::OperatorCost>& costs) const {
  for (const Group& group : groups_) {
    const std::vector<pipeline::OperatorCost> own = group.pipeline->costs();
    for (size_t i = 0; i < std::min(own.size(), costs.size()); ++i) {
      costs[i].cpu += own[i].cpu;
      costs[i].python += own[i].python;
    }
  }
}

std::map<std::string, const pipeline::TensorConversion*> ViewGroups::conversions() const {
  std::map<std::string, const pipeline::TensorConversion*> conversions;
  for (const Group& group : groups_) {
    conversions[group.spec.name] = group.converts ? &group.pipeline->conversion() : nullptr;
  }
  return conversions;
}

bool IsConverted(const std::vector<api::OperatorSpec>& operators, std::string_view view) {
  return std::any_of(operators.begin(), operators.end(), [view](const api::OperatorSpec& spec) {
    return api::IsFor(spec, view) &&
           (spec.op == api::OperatorKind::kNormalize ||
            (spec.op == api::OperatorKind::kCast && spec.type == api::ElementType::kFloat32));
  });
}

}  // namespace hetero::feed
