#pragma once

#include <optional>

#include "runtime/feed/placement.h"
#include "runtime/feed/wire/batch.h"

namespace hetero::feed {

// Where the placement stands, for the report.
struct PlacementState {
  std::optional<PlacementChoice> choice;  // absent before the probe has ended
  double worker_seconds = 0;  // of a worker's core, per sample at the first cut; 0: not measured
};

// Begins with the first cut, watches the workers' first batches, then chooses once. Not
// thread-safe.
class PlacementProbe {
 public:
  static constexpr int64_t kBatches = 8;

  // `input` without what the workers are measured for. No cuts: everything is the workers'.
  explicit PlacementProbe(PlacementInput input);

  // Entries that tickets issued now leave to the trainer.
  int32_t left() const;
  // A worker's batch, before the trainer's part of it.
  void OnBatch(const Batch& batch);
  // Whether the workers' rate is wanted.
  bool due() const { return !choice_ && batches_ >= kBatches; }
  void Choose(double worker_samples_per_second, double demand, double bytes_per_second);
  PlacementState state() const;

 private:
  PlacementInput input_;
  std::optional<PlacementChoice> choice_;
  int64_t batches_ = 0;
  int64_t samples_ = 0;     // at the first cut
  double cpu_seconds_ = 0;  // likewise
};

}  // namespace hetero::feed
