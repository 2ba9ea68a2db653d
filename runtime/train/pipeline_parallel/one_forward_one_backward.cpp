#include "runtime/train/pipeline_parallel/one_forward_one_backward.h"

#include <algorithm>

namespace hetero::train {

std::vector<PipelineAction> OneForwardOneBackward(int32_t stage, int32_t partitions,
                                                  int64_t microbatches) {
  using Kind = PipelineAction::Kind;
  const int64_t ahead = std::min<int64_t>(partitions - 1 - stage, microbatches);
  std::vector<PipelineAction> actions;
  actions.reserve(static_cast<size_t>(2 * microbatches));
  for (int64_t i = 0; i < ahead; ++i) actions.push_back({Kind::kForward, i});
  for (int64_t i = ahead; i < microbatches; ++i) {
    actions.push_back({Kind::kForward, i});
    actions.push_back({Kind::kBackward, i - ahead});
  }
  for (int64_t i = microbatches - ahead; i < microbatches; ++i) {
    actions.push_back({Kind::kBackward, i});
  }
  return actions;
}

std::vector<int64_t> MicrobatchSizes(int64_t samples, int64_t microbatches) {
  const int64_t parts = std::min(samples, microbatches);
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < parts; ++i) {
    sizes.push_back(samples / parts + (i < samples % parts ? 1 : 0));
  }
  return sizes;
}

}  // namespace hetero::train
