#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/train/checkpoint/checkpoint_writer.h"
#include "runtime/train/checkpoint/training_state.h"
#include "runtime/train/pipeline_parallel/partition.h"
#include "runtime/train/process_group/gloo_group.h"

// The state of the whole job as the files of a checkpoint, and back. Where the model is cut, the
// ranks of the first pipeline hold it together and rank 0 reads and writes for them, so that the
// files are those of a job without partitions: either may go on from the other's. Functions throw
// what LibTorch throws.
namespace hetero::train {

// Bytes of kModelFile and kOptimizerFile, of a whole model or of one partition.
struct StatePart {
  std::string model, optimizer;
};

// One part per partition. `layout` is null without partitions. kFailedPrecondition names a tensor
// that this model has not.
absl::StatusOr<std::vector<StatePart>> SplitState(const CheckpointPlace::Loaded& checkpoint,
                                                  const PartitionLayout* layout,
                                                  int32_t partitions);
// Called by all ranks of the first pipeline; gives each its part of `parts`, which are rank 0's.
// `group` is null for a job of one rank. Errors as CopyFromTensorFile.
absl::Status RestoreParts(const std::vector<StatePart>& parts, const GlooGroup* group,
                          TrainingState& state);

// Called by all ranks between two steps; makes rank 0's source of the files, as the state is now.
// On the other ranks it is empty.
CheckpointWriter::Source GatherState(const TrainingState& state, const GlooGroup* group,
                                     const std::string& model_name);

}  // namespace hetero::train
