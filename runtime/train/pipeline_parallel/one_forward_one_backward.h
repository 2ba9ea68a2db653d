#pragma once

#include <cstdint>
#include <vector>

namespace hetero::train {

// One thing that a stage does with one microbatch.
struct PipelineAction {
  enum class Kind { kForward, kBackward };
  Kind kind = Kind::kForward;
  int64_t microbatch = 0;
  bool operator==(const PipelineAction&) const = default;
};

// The order in which stage `stage` of `partitions` treats a step's microbatches: 1F1B with a flush
// (Narayanan et al., "Efficient large-scale language model training on GPU clusters", 2021). As
// many forwards as there are stages behind this one, then one forward and one backward in turn,
// then the backwards that are left. A stage never holds the activations of more than partitions -
// stage microbatches.
std::vector<PipelineAction> OneForwardOneBackward(int32_t stage, int32_t partitions,
                                                  int64_t microbatches);

// `samples` in `microbatches` parts whose sizes differ by one at most, larger ones first; no part
// is empty, so there are fewer when there are fewer samples. Empty for no samples.
std::vector<int64_t> MicrobatchSizes(int64_t samples, int64_t microbatches);

}  // namespace hetero::train
