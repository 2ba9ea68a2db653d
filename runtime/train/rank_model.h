#pragma once

#include "absl/status/statusor.h"
#include "runtime/train/pipeline_parallel/partition.h"
#include "runtime/train/process_group/pipeline_place.h"
#include "runtime/train/trainer_options.h"

namespace hetero::train {

// Where the rank of `options` stands among the job's pipelines.
PipelinePlace PlaceOf(const TrainerOptions& options);

// What this rank trains: OpenModel and, with partitions, CutModel, whose errors it gives. Throws
// what LibTorch throws.
absl::StatusOr<RankModel> OpenRankModel(const TrainerOptions& options);

}  // namespace hetero::train
