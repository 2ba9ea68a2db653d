#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime/job/stream_digest.h"
#include "runtime/train/process_group/gloo_group.h"

namespace hetero::train {

// Whether a rank is to leave the others, who go on without it: its pod is deleted, its node
// drained.
enum class Leave {
  kNo,
  kWish,    // it has been asked to, a moment ago: all the others may just be asked too
  kInsist,  // it has waited for them long enough
};

// What one rank brings to an exchange.
struct RankState {
  bool stop = false;  // asked to stop
  Leave leave = Leave::kNo;
  bool compare = false;      // the ranks shall compare their parameters before they go on
  absl::Status error;        // why this rank cannot go on
  int64_t samples = 0;       // of the batch it holds
  job::StreamDigest digest;  // of these samples
  double loss = 0;           // sum over the samples of `loss_samples`
  int64_t loss_samples = 0;
  int64_t correct = 0;  // evaluation only
};

// The same on every rank: sums over all ranks, and what ends the job on all of them.
struct JobState {
  // OK to go on; kCancelled when a rank was asked to stop, or all were asked to leave; kAborted
  // when `leavers` leave; else a rank's error.
  absl::Status verdict;
  std::vector<int32_t> leavers;  // ascending; some of the ranks, never all
  bool compare = false;          // a rank asks for it
  int64_t samples = 0;
  job::StreamDigest digest;
  double loss = 0;  // sum; not finite when that of one rank is not
  int64_t loss_samples = 0;
  int64_t correct = 0;
};

// Keeps the ranks together: they tell each other their state in one small all-reduce before any
// other collective, so that all of them go on, or none. Belongs to one thread. Throws what LibTorch
// throws.
class Agreement {
 public:
  // `group` is null for a job of one rank; it outlives this.
  Agreement(GlooGroup* group, int32_t rank, int32_t world_size);

  // The rank that failed gets its own error, the others "rank 1 stopped: ..." with the same code.
  JobState Exchange(const RankState& own);
  // `value` of every rank, by rank.
  std::vector<int64_t> Gather(int64_t value);
  // The sum of all ranks' values; every rank gets the same bits.
  double Sum(double value);
  // `values` of `root` on every rank.
  void Broadcast(std::vector<int64_t>& values, int32_t root);

 private:
  absl::Status Verdict(const RankState& own, const std::vector<double>& codes, bool stop);
  // Of how many ranks wish or insist to leave, by rank, once nothing else ends the job.
  static absl::Status Part(const std::vector<double>& leaves, std::vector<int32_t>& leavers);

  GlooGroup* group_;
  int32_t rank_;
  int32_t world_size_;
};

}  // namespace hetero::train
