#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "runtime/feed/wire/batch.h"
#include "runtime/job/field_set.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/source/dataset.h"

namespace hetero::feed {

// The views of a training sample beside "image" (api::FurtherViews): tensors [count, H, W, C] uint8
// of its batch, [H, W, C] of a single one, each by its own entries of spec.pipeline. Immutable,
// safe from any thread.
class ViewGroups {
 public:
  // Errors as Pipeline::Create(), with the name of the view. kInvalidArgument also where `train`
  // has more samples than there are random numbers for several views.
  static absl::StatusOr<ViewGroups> Create(const api::Spec& spec, const source::Dataset& train,
                                           const pipeline::PythonFunctions* python = nullptr);

  bool empty() const { return groups_.empty(); }
  int64_t bytes() const;  // of one sample
  // What a sample has besides its image: its label, and the tensors of these views.
  job::FieldSet With(const api::Label& label) const;
  // Makes all views of entry `index` of `batch`, which has these fields, with keys of their own.
  // Errors as Pipeline::Run().
  absl::Status Run(const source::RawSample& sample, const pipeline::SampleKey& key, int64_t index,
                   Batch* batch) const;
  // Adds what each entry has cost for these views, of samples that are counted in `costs` already.
  void AddCosts(std::vector<pipeline::OperatorCost>& costs) const;
  // By tensor, what a script does to it; null where no entry converts it. Valid as long as this.
  std::map<std::string, const pipeline::TensorConversion*> conversions() const;

 private:
  struct Group {
    job::FieldSpec spec;
    std::shared_ptr<const pipeline::Pipeline> pipeline;
    bool converts = false;
  };
  std::vector<Group> groups_;
};

// Whether an entry that is for `view` makes something else of its bytes.
bool IsConverted(const std::vector<api::OperatorSpec>& operators, std::string_view view);

}  // namespace hetero::feed
