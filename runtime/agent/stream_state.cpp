#include "runtime/agent/stream_state.h"

#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/utf8.h"
#include "runtime/job/sample_order.h"

namespace hetero::agent {
namespace {

constexpr size_t kMaxShownPart = 80;

struct FingerprintPart {
  const char* key;
  const char* name;  // for people
};
constexpr FingerprintPart kParts[] = {
    {"dataset", "another dataset (fingerprint "},
    {"shuffle", "another order of its samples (dataset.shuffle "},
    {"last-batch", "another handling of the last batch (training.lastBatch "},
    {"pipeline", "another pipeline (hash "},
};

std::map<std::string, std::string> PartsOf(const std::string& fingerprint) {
  std::map<std::string, std::string> parts;
  for (const auto& piece : absl::StrSplit(fingerprint, ' ')) {
    const std::string part(piece.data(), piece.size());
    const size_t colon = part.find(':');
    if (colon != std::string::npos) parts[part.substr(0, colon)] = part.substr(colon + 1);
  }
  return parts;
}

std::vector<std::string> Differences(const std::string& found, const std::string& own) {
  std::vector<std::string> differences;
  std::map<std::string, std::string> theirs = PartsOf(found), ours = PartsOf(own);
  for (const FingerprintPart& part : kParts) {
    if (theirs[part.key] == ours[part.key]) continue;
    differences.push_back(absl::StrCat("it is of ", part.name,
                                       base::ToUtf8(theirs[part.key], kMaxShownPart),
                                       ", the job's is ", ours[part.key], ")"));
  }
  if (differences.empty() && found != own) {
    differences.push_back("its fingerprint was not made by this version");
  }
  return differences;
}

}  // namespace

std::string StreamFingerprint(const std::string& dataset_fingerprint,
                              const api::HeteroTrainingJob& job) {
  const job::SampleOrder order = job::SampleOrderOf(job);
  std::string shuffle = order.shuffle;  // "Block of 1024"
  for (char& character : shuffle) {
    if (character == ' ') character = '-';
  }
  return absl::StrCat("dataset:", dataset_fingerprint, " shuffle:", shuffle,
                      " last-batch:", order.last_batch, " pipeline:", order.pipeline);
}

StreamState StateAt(const Position& position, const std::string& fingerprint, int64_t seed,
                    const job::StepPlan& plan) {
  StreamState state{.fingerprint = fingerprint,
                    .seed = seed,
                    .epoch = position.step / plan.steps_per_epoch(),
                    .step = position.step,
                    .global_batch = plan.global_batch()};
  state.slot = position.step % plan.steps_per_epoch() * plan.global_batch();
  if (position.proven) state.digest = position.digest;
  return state;
}

absl::StatusOr<Position> PositionOf(const StreamState& state, const std::string& fingerprint,
                                    int64_t seed, const job::StepPlan& plan) {
  std::vector<std::string> differences = Differences(state.fingerprint, fingerprint);
  if (state.seed != seed) {
    differences.push_back(absl::StrCat("its seed is ", state.seed, ", training.seed is ", seed));
  }
  if (state.global_batch != plan.global_batch()) {
    differences.push_back(absl::StrCat(
        "its steps have ", state.global_batch, " samples, the job's have ", plan.global_batch(),
        " (ranks x batchSizePerWorker x gradientAccumulationSteps); with another number of ranks "
        "keep this product the same"));
  }
  if (state.step < 0 || state.step > plan.total_steps()) {
    differences.push_back(absl::StrCat("it is after step ", state.step, ", the job has ",
                                       plan.total_steps(),
                                       " (training.epochs, training.maxSteps)"));
  }
  Position position{.step = state.step, .proven = state.digest.has_value()};
  if (state.digest.has_value()) position.digest = *state.digest;
  if (differences.empty()) {
    const StreamState own = StateAt(position, fingerprint, seed, plan);
    if (state.epoch != own.epoch || state.slot != own.slot) {
      differences.push_back(absl::StrCat("after step ", state.step, " comes slot ", own.slot,
                                         " of epoch ", own.epoch, ", it says slot ", state.slot,
                                         " of epoch ", state.epoch, ": it was changed"));
    }
    if (state.step == 0 && state.digest.has_value() && *state.digest != job::StreamDigest()) {
      differences.push_back("it has a digest of no samples: it was changed");
    }
  }
  if (!differences.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("this state is not of the job's stream: ", absl::StrJoin(differences, "; "),
                     ". Load a state of this job, or start without one"));
  }
  // Nothing is proven of nothing, and nothing is missing.
  if (position.step == 0) position = {};
  return position;
}

}  // namespace hetero::agent
