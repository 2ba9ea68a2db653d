#include "runtime/train/process_group/agreement.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hetero::train {
namespace {

// Places in the vector that is summed. It is float64 so that the loss can travel with the counters,
// which stay exact: they are below 2^53, and the digest goes in four limbs of 32 bits that leave
// room for the carries of 2^21 ranks. The status codes of the ranks follow, one place each, then
// whether they leave.
enum Place {
  kStop,
  kSamples,
  kDigest,
  kLoss = kDigest + 4,
  kLossSamples,
  kCorrect,
  kCompare,
  kCodes,
};

constexpr int64_t kMessageBytes = 1024;

void PackDigest(const job::StreamDigest& digest, double* limbs) {
  limbs[0] = static_cast<double>(digest.low() & 0xffffffffu);
  limbs[1] = static_cast<double>(digest.low() >> 32);
  limbs[2] = static_cast<double>(digest.high() & 0xffffffffu);
  limbs[3] = static_cast<double>(digest.high() >> 32);
}

// The sum modulo 2^128.
job::StreamDigest UnpackDigest(const double* limbs) {
  uint64_t carry = 0;
  uint64_t digits[4];
  for (int i = 0; i < 4; ++i) {
    const uint64_t sum = static_cast<uint64_t>(limbs[i]) + carry;
    digits[i] = sum & 0xffffffffu;
    carry = sum >> 32;
  }
  return {digits[2] | digits[3] << 32, digits[0] | digits[1] << 32};
}

}  // namespace

Agreement::Agreement(GlooGroup* group, int32_t rank, int32_t world_size)
    : group_(group), rank_(rank), world_size_(world_size) {}

JobState Agreement::Exchange(const RankState& own) {
  const auto leaves = static_cast<size_t>(kCodes + world_size_);
  std::vector<double> values(leaves + static_cast<size_t>(world_size_), 0);
  values[kStop] = own.stop;
  values[kSamples] = static_cast<double>(own.samples);
  PackDigest(own.digest, &values[kDigest]);
  values[kLoss] = own.loss;
  values[kLossSamples] = static_cast<double>(own.loss_samples);
  values[kCorrect] = static_cast<double>(own.correct);
  values[kCompare] = own.compare;
  values[static_cast<size_t>(kCodes + rank_)] = static_cast<double>(own.error.code());
  values[leaves + static_cast<size_t>(rank_)] = static_cast<double>(own.leave);
  if (group_ != nullptr) {
    torch::Tensor sums =
        torch::from_blob(values.data(), {static_cast<int64_t>(values.size())}, torch::kFloat64);
    group_->SumControl(sums);
  }
  JobState job;
  job.samples = static_cast<int64_t>(values[kSamples]);
  job.digest = UnpackDigest(&values[kDigest]);
  job.loss = values[kLoss];
  job.loss_samples = static_cast<int64_t>(values[kLossSamples]);
  job.correct = static_cast<int64_t>(values[kCorrect]);
  job.compare = values[kCompare] > 0;
  const auto first_leave = values.begin() + static_cast<std::ptrdiff_t>(leaves);
  job.verdict = Verdict(own, {values.begin() + kCodes, first_leave}, values[kStop] > 0);
  if (job.verdict.ok()) job.verdict = Part({first_leave, values.end()}, job.leavers);
  return job;
}

absl::Status Agreement::Part(const std::vector<double>& leaves, std::vector<int32_t>& leavers) {
  bool insists = false;
  for (size_t rank = 0; rank < leaves.size(); ++rank) {
    if (leaves[rank] == 0) continue;
    leavers.push_back(static_cast<int32_t>(rank));
    insists |= leaves[rank] == static_cast<double>(Leave::kInsist);
  }
  if (leavers.size() == leaves.size()) {
    leavers.clear();
    return absl::CancelledError("all ranks were asked to leave");
  }
  if (insists) {
    return absl::AbortedError(absl::StrCat(leavers.size() == 1 ? "rank " : "ranks ",
                                           absl::StrJoin(leavers, ", "),
                                           leavers.size() == 1 ? " leaves" : " leave"));
  }
  leavers.clear();
  return absl::OkStatus();
}

absl::Status Agreement::Verdict(const RankState& own, const std::vector<double>& codes, bool stop) {
  if (stop) return absl::CancelledError("training was asked to stop");
  const auto failed = std::find_if(codes.begin(), codes.end(), [](double c) { return c != 0; });
  if (failed == codes.end()) return absl::OkStatus();
  const auto failed_rank = static_cast<int32_t>(failed - codes.begin());
  std::vector<char> message(kMessageBytes, 0);
  if (failed_rank == rank_) {
    const std::string text(own.error.message().substr(0, kMessageBytes - 1));
    std::memcpy(message.data(), text.data(), text.size());
  }
  if (group_ != nullptr) {
    torch::Tensor bytes = torch::from_blob(message.data(), {kMessageBytes}, torch::kUInt8);
    group_->BroadcastControl(bytes, failed_rank);
  }
  if (!own.error.ok()) return own.error;
  return absl::Status(static_cast<absl::StatusCode>(static_cast<int>(*failed)),
                      absl::StrCat("rank ", failed_rank, " stopped: ", message.data()));
}

std::vector<int64_t> Agreement::Gather(int64_t value) {
  std::vector<int64_t> values(static_cast<size_t>(world_size_), 0);
  values[static_cast<size_t>(rank_)] = value;
  if (group_ != nullptr) {
    torch::Tensor sums =
        torch::from_blob(values.data(), {static_cast<int64_t>(values.size())}, torch::kInt64);
    group_->SumControl(sums);
  }
  return values;
}

double Agreement::Sum(double value) {
  if (group_ == nullptr) return value;
  torch::Tensor sum = torch::full({1}, value, torch::kFloat64);
  group_->SumControl(sum);
  return sum.item<double>();
}

void Agreement::Broadcast(std::vector<int64_t>& values, int32_t root) {
  if (group_ == nullptr) return;
  torch::Tensor tensor =
      torch::from_blob(values.data(), {static_cast<int64_t>(values.size())}, torch::kInt64);
  group_->BroadcastControl(tensor, root);
}

}  // namespace hetero::train
