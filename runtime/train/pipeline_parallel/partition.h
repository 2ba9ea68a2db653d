#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "runtime/train/models/model.h"
#include "runtime/train/process_group/pipeline_place.h"

namespace hetero::train {

// Where each of `stages` consecutive layers goes: partition k gets the layers from entry k up to
// entry k + 1, at least one, so that the heaviest partition is as light as it can be. `weights` has
// an entry per layer, and at least as many as there are partitions. partitions + 1 entries.
std::vector<size_t> BalancedCuts(const std::vector<int64_t>& weights, int32_t partitions);

// How a model is cut; the same on all ranks.
struct PartitionLayout {
  std::vector<std::string> parameters;       // of the whole model, in its order
  std::map<std::string, int32_t> partition;  // by parameter
  // What one sample is when it enters this rank's partition, without the batch dimension; of
  // float32. Empty for the first.
  std::vector<int64_t> activation;
};

// What one rank trains.
struct RankModel {
  // Its layers, with their parameters under the names of the whole model; forward takes what the
  // partition before gives.
  std::shared_ptr<Model> model;
  std::shared_ptr<const PartitionLayout> layout;  // null for the whole model
};

// The partition of `whole` that belongs to `place`; the memory of the others' parameters is given
// back. The weights of a layer count as its work. kInvalidArgument says why a model cannot be cut:
// it has no cut points or too few, keeps statistics over batches, or a parameter belongs to several
// layers or to none.
absl::StatusOr<RankModel> CutModel(std::shared_ptr<Model> whole, const PipelinePlace& place,
                                   const api::ImageShape& input);

}  // namespace hetero::train
