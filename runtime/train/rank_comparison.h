#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/train/models/model.h"
#include "runtime/train/process_group/agreement.h"

namespace hetero::train {

// Whether all ranks still hold the same parameters, which a machine that computes wrongly, or
// another build of a library, would end in silence. All of them look after each epoch, and in a
// long one when rank 0's clock says so: every five minutes, or as seldom as it takes for looking to
// cost no more than a thousandth of the time; and before a checkpoint that the clock asks for,
// which others will go on from. Belongs to one thread.
class RankComparison {
 public:
  static constexpr base::Duration kInterval = std::chrono::minutes(5);
  static constexpr int kShare = 1000;

  // When they are to look next, from generation to generation.
  class Schedule {
   public:
    explicit Schedule(base::Clock& clock) : clock_(clock), due_(clock.Now() + kInterval) {}
    bool IsDue() const { return clock_.Now() >= due_; }

   private:
    friend class RankComparison;
    base::Clock& clock_;
    base::Instant due_;
  };
  // `partitions` ranks hold the model together. The others outlive this.
  RankComparison(const Model& model, int32_t partitions, Agreement& agreement, Schedule& schedule);

  bool IsDue() const { return schedule_.IsDue(); }
  // CRC32C over this rank's parameters and buffers. Every rank calls it after the same step;
  // kDataLoss, on all of them, says which differs. `where`: "at epoch 3".
  absl::StatusOr<uint32_t> Compare(const std::string& where);

 private:
  const Model& model_;
  const size_t partitions_;
  Agreement& agreement_;
  Schedule& schedule_;
};

}  // namespace hetero::train
