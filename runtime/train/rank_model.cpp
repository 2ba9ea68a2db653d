#include "runtime/train/rank_model.h"

#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "runtime/train/models/model.h"

namespace hetero::train {

PipelinePlace PlaceOf(const TrainerOptions& options) {
  return PipelinePlace::Of(options.rank, options.world_size,
                           options.job.spec.training.parallelism.partitions);
}

absl::StatusOr<RankModel> OpenRankModel(const TrainerOptions& options) {
  const api::Training& training = options.job.spec.training;
  HETERO_ASSIGN_OR_RETURN(std::shared_ptr<Model> model,
                          OpenModel(training.model, options.classes, options.input, training.seed));
  const PipelinePlace place = PlaceOf(options);
  if (!place.partitioned()) return RankModel{.model = std::move(model), .layout = nullptr};
  return CutModel(std::move(model), place, options.input);
}

}  // namespace hetero::train
