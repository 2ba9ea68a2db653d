#pragma once

#include <cstdint>

namespace hetero::train {

// Where a rank stands in a job whose model is cut into partitions: `partitions` consecutive ranks
// are one pipeline that holds one copy of the model, rank `stage` of it the layers of that
// partition. Without partitions every rank is a pipeline of its own.
struct PipelinePlace {
  int32_t partitions = 1;
  int32_t stage = 0;      // in its pipeline
  int32_t pipeline = 0;   // which of them
  int32_t pipelines = 1;  // copies of the model

  // `partitions` divides `world_size`.
  static PipelinePlace Of(int32_t rank, int32_t world_size, int32_t partitions) {
    return {.partitions = partitions,
            .stage = rank % partitions,
            .pipeline = rank / partitions,
            .pipelines = world_size / partitions};
  }
  bool partitioned() const { return partitions > 1; }
  bool first() const { return stage == 0; }
  bool last() const { return stage == partitions - 1; }
};

}  // namespace hetero::train
