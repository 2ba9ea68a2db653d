#include "runtime/process/input_window.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "api/byte_size.h"

namespace hetero::process {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr int64_t kLeast = 192 * kMebibyte;
constexpr int64_t kMost = 2048 * kMebibyte;
// Of a rank's part of the memory. Most of it is for the model, and a transport's slots, a
// validation pass and what a script holds come to as much again as the window.
constexpr int64_t kUsualPart = 10;
constexpr int64_t kLargestPart = 4;
constexpr int64_t kLargestWantedPart = 2;

absl::Status TooMuch(const InputWindowOptions& options, int64_t most) {
  return absl::InvalidArgumentError(absl::StrCat(
      "spec.training.inputWindow: ", options.wanted, " for each of ", options.ranks,
      options.ranks == 1 ? " rank" : " ranks", " that share a memory limit of ",
      *options.memory_limit / kMebibyte, "Mi is more than half of it; make it at most ",
      std::max<int64_t>(most / kMebibyte, 1),
      "Mi, or raise resources.limits.memory of the GPUWorker's container"));
}

}  // namespace

absl::StatusOr<int64_t> InputWindow(const InputWindowOptions& options) {
  std::optional<int64_t> part;
  if (options.memory_limit) part = *options.memory_limit / std::max(options.ranks, 1);
  const int64_t two_batches = 2 * options.batch_bytes;
  if (const std::optional<int64_t> wanted = api::Bytes(options.wanted)) {
    const int64_t most = part ? *part / kLargestWantedPart : *wanted;
    if (*wanted > most) return TooMuch(options, most);
    return std::max(*wanted, two_batches);
  }
  if (!part) return std::max(kLeast, two_batches);
  const int64_t usual = std::clamp(*part / kUsualPart, kLeast, kMost);
  return std::max(std::min(usual, *part / kLargestPart), two_batches);
}

}  // namespace hetero::process
