#include "runtime/train/state_sync.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/train/checkpoint/state_files.h"
#include "runtime/train/checkpoint/state_tensors.h"
#include "runtime/train/data_parallel/data_parallel.h"

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

// Gives the parameters of `fresh` and an optimiser that has done nothing.
void StartAnew(const Model& fresh, TrainingState& state) {
  torch::NoGradGuard no_grad;
  const NamedTensors initial = ModelTensors(fresh);
  const NamedTensors own = ModelTensors(state.model());
  for (size_t i = 0; i < own.size(); ++i) {
    torch::Tensor target = own[i].second;
    target.copy_(initial[i].second);
  }
  for (const auto& [name, tensor] : OptimizerTensors(state.model(), state.optimizer())) {
    torch::Tensor target = tensor;
    target.zero_();
  }
}

// The lowest pipeline whose rank in partition `stage` has done `step` steps.
int32_t SourceOf(const std::vector<int64_t>& steps, int64_t step, const PipelinePlace& place) {
  for (int32_t pipeline = 0; pipeline < place.pipelines; ++pipeline) {
    if (steps[static_cast<size_t>(pipeline * place.partitions + place.stage)] == step) {
      return pipeline;
    }
  }
  return 0;  // nobody holds anything: what the first pipeline has loaded
}

bool AllHold(const std::vector<int64_t>& steps, int64_t step, const PipelinePlace& place) {
  for (size_t rank = static_cast<size_t>(place.stage); rank < steps.size();
       rank += static_cast<size_t>(place.partitions)) {
    if (steps[rank] != step) return false;
  }
  return true;
}

}  // namespace

int64_t NewestCommonStep(const std::vector<int64_t>& steps, int32_t partitions) {
  const auto count = static_cast<size_t>(partitions);
  int64_t newest = kNoState;
  for (const int64_t step : steps) {
    std::vector<bool> held(count, false);
    for (size_t rank = 0; rank < steps.size(); ++rank) {
      if (steps[rank] == step) held[rank % count] = true;
    }
    if (std::count(held.begin(), held.end(), true) == partitions) newest = std::max(newest, step);
  }
  return newest;
}

absl::Status StateSync::Run(TrainingState& state) {
  const int64_t own = state.established ? state.standing.step : kNoState;
  const std::vector<int64_t> steps = agreement.Gather(own);
  const PipelinePlace place = group == nullptr ? PipelinePlace{} : group->place();
  const int64_t common = NewestCommonStep(steps, place.partitions);
  const bool nobody = common == kNoState;
  if (nobody) {
    HETERO_RETURN_IF_ERROR(Begin(state));
  } else {
    HETERO_RETURN_IF_ERROR(agreement.Exchange({.stop = stop, .error = failure}).verdict);
  }
  if (group == nullptr) {
    state.established = true;
    return absl::OkStatus();
  }

  CheckSameShapes(*group, state.model());
  const auto source =
      static_cast<int32_t>(std::find(steps.begin(), steps.end(), common) - steps.begin());
  std::vector<int64_t> standing = Pack(state.standing);
  agreement.Broadcast(standing, nobody ? 0 : source);
  if (nobody || !AllHold(steps, common, place)) {
    NamedTensors tensors = ModelTensors(state.model());
    NamedTensors moments = OptimizerTensors(state.model(), state.optimizer());
    tensors.insert(tensors.end(), moments.begin(), moments.end());
    const bool held = !nobody && own == common;
    const int32_t giver = SourceOf(steps, common, place);
    if (held && giver != place.pipeline) tensors = CopyOf(tensors);
    if (!held) {
      state.established = false;
      state.touched = true;
    }
    std::vector<torch::Tensor> values;
    for (const auto& [name, tensor] : tensors) values.push_back(tensor);
    BroadcastTensors(*group, values, giver);
  }
  if (!state.established) state.pending.reset();
  state.standing = Unpack(standing);
  state.established = true;
  if (own != kNoState && own != common) {
    log::Info("took over a step that was done elsewhere",
              {{"step", state.standing.step}, {"before", own}});
  }
  return absl::OkStatus();
}

// Nobody holds the whole state: from a checkpoint, or the beginning.
absl::Status StateSync::Begin(TrainingState& state) {
  const PipelinePlace place = group == nullptr ? PipelinePlace{} : group->place();
  RankState word{.stop = stop, .error = failure};
  std::vector<StatePart> parts;
  Standing standing;
  if (checkpointer != nullptr) {
    absl::StatusOr<std::optional<CheckpointPlace::Loaded>> loaded = checkpointer->Load();
    word.error = loaded.status();
    if (loaded.ok() && loaded->has_value()) {
      absl::StatusOr<std::vector<StatePart>> split = SplitState(**loaded, layout, place.partitions);
      word.error = split.status();
      if (split.ok()) parts = *std::move(split);
      standing = Checkpointer::StandingOf((*loaded)->manifest);
    }
  }
  HETERO_RETURN_IF_ERROR(agreement.Exchange(word).verdict);
  std::vector<int64_t> has_checkpoint = {!parts.empty()};
  agreement.Broadcast(has_checkpoint, 0);

  state.established = false;
  absl::Status begun;
  if (has_checkpoint[0] != 0) {
    const bool takes = place.partitioned() ? place.pipeline == 0 : rank == 0;
    if (takes) begun = RestoreParts(parts, group, state);
  } else if (state.touched) {
    const absl::StatusOr<RankModel> fresh = make_model();
    begun = fresh.status();
    if (fresh.ok()) StartAnew(*fresh->model, state);
  }
  state.standing = standing;
  return agreement.Exchange({.error = begun}).verdict;
}

}  // namespace hetero::train
