#include "runtime/train/state_sync.h"

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/train/ddp.h"
#include "runtime/train/state_tensors.h"

namespace hetero::train {
namespace {

// As integers, for a broadcast.
std::vector<int64_t> Pack(const Standing& standing) {
  return {standing.step, standing.evaluated_step, static_cast<int64_t>(standing.digest.high()),
          static_cast<int64_t>(standing.digest.low()), standing.samples_consumed};
}

Standing Unpack(const std::vector<int64_t>& values) {
  return {.step = values[0],
          .evaluated_step = values[1],
          .digest =
              job::StreamDigest(static_cast<uint64_t>(values[2]), static_cast<uint64_t>(values[3])),
          .samples_consumed = values[4]};
}

}  // namespace

absl::Status StateSync::Run(TrainingState& state) {
  constexpr int64_t kNone = -1;
  const int64_t own = state.established ? state.standing.step : kNone;
  const std::vector<int64_t> steps = agreement.Gather(own);
  const auto most = std::max_element(steps.begin(), steps.end());

  RankState word{.stop = stop, .error = failure};
  if (*most == kNone && checkpointer != nullptr) {
    word.error = checkpointer->Resume(state).status();
  }
  HETERO_RETURN_IF_ERROR(agreement.Exchange(word).verdict);
  if (group == nullptr) {
    state.established = true;
    return absl::OkStatus();
  }

  CheckSameShapes(*group, state.model());
  const auto source = static_cast<int32_t>(most - steps.begin());
  std::vector<int64_t> standing = Pack(state.standing);
  agreement.Broadcast(standing, source);
  if (std::count(steps.begin(), steps.end(), *most) != static_cast<int64_t>(steps.size()) ||
      *most == kNone) {
    NamedTensors tensors = ModelTensors(state.model());
    NamedTensors moments = OptimizerTensors(state.model(), state.optimizer());
    tensors.insert(tensors.end(), moments.begin(), moments.end());
    const bool held = own != kNone && own == *most;
    if (held && rank != source) tensors = CopyOf(tensors);
    if (!held) state.established = false;
    std::vector<torch::Tensor> values;
    for (const auto& [name, tensor] : tensors) values.push_back(tensor);
    BroadcastTensors(*group, values, source);
  }
  if (!state.established) state.pending.reset();
  state.standing = Unpack(standing);
  state.established = true;
  if (own != kNone && own < *most) {
    log::Info("took over a step that was done elsewhere", {{"step", *most}, {"from", source}});
  }
  return absl::OkStatus();
}

}  // namespace hetero::train
