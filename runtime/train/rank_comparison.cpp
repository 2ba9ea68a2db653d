#include "runtime/train/rank_comparison.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/train/models/parameter_crc.h"

namespace hetero::train {

RankComparison::RankComparison(const Model& model, int32_t partitions, Agreement& agreement,
                               Schedule& schedule)
    : model_(model),
      partitions_(static_cast<size_t>(partitions)),
      agreement_(agreement),
      schedule_(schedule) {}

absl::StatusOr<uint32_t> RankComparison::Compare(const std::string& where) {
  const base::Instant began = schedule_.clock_.Now();
  const uint32_t own = ParameterCrc(model_);
  const std::vector<int64_t> all = agreement_.Gather(own);
  const base::Instant now = schedule_.clock_.Now();
  schedule_.due_ = now + std::max(kInterval, kShare * (now - began));
  for (size_t rank = partitions_; rank < all.size(); ++rank) {
    if (all[rank] == all[rank % partitions_]) continue;
    return absl::DataLossError(absl::StrCat(
        "ranks diverged ", where, ": the parameters of rank ", rank, " differ from those of rank ",
        rank % partitions_,
        ". Check that all GPU workers run the same image on the same kind of machine"));
  }
  return own;
}

}  // namespace hetero::train
