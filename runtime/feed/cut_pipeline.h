#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "runtime/pipeline/pipeline.h"

namespace hetero::feed {

// The uint8 part of a pipeline, whole and cut in two wherever the size of the picture between two
// entries is fixed: a CPU worker does the front, a trainer the rest. Both together yield the
// whole's bytes, because an operator draws from its position in the manifest. Immutable once it
// is set up, safe from any thread.
class CutPipeline {
 public:
  // Errors as Pipeline::Create(). A trainer has nobody who would call Python functions, so they are
  // in no rest.
  static absl::StatusOr<std::unique_ptr<CutPipeline>> Create(
      const std::vector<api::OperatorSpec>& operators, const api::ImageShape& input,
      job::Split split, base::Clock& clock = base::Clock::Real(),
      const pipeline::PythonFunctions* python = nullptr);

  // The same where nothing can be left, for `views` pictures of each sample: whoever makes the
  // first of its views makes them all.
  static absl::StatusOr<std::unique_ptr<CutPipeline>> CreateUncut(
      const std::vector<api::OperatorSpec>& operators, const api::ImageShape& input,
      job::Split split, int32_t views, const pipeline::PythonFunctions* python = nullptr);

  // From now on nothing is left to a trainer.
  void KeepWhole() {
    for (Cut& cut : cuts_) cut = {};
  }

  const pipeline::Pipeline& whole() const { return *whole_; }
  // Entries before the first Normalize or Cast.
  int32_t entries() const { return static_cast<int32_t>(cuts_.size()); }
  // Whether the last `left` entries can be left to somebody else; 0 always can.
  bool CanLeave(int32_t left) const;
  // What remains to be done without the last `left` entries, and these; CanLeave(left) holds.
  const pipeline::Pipeline& front(int32_t left) const;
  const pipeline::Pipeline& rest(int32_t left) const;  // left > 0
  // By entry, of the whole and of all fronts.
  std::vector<pipeline::OperatorCost> costs() const;

 private:
  struct Cut {
    std::unique_ptr<pipeline::Pipeline> front, rest;  // null where no cut is possible
  };
  std::unique_ptr<pipeline::Pipeline> whole_;
  std::vector<Cut> cuts_;  // cuts_[i] leaves i + 1 entries
};

}  // namespace hetero::feed
