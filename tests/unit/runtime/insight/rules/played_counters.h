#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "runtime/insight/evidence.h"

namespace hetero::insight {

enum PlayedGroup { kPipeline, kFeed, kTrain, kPython, kStorage, kGrpc, kPlayedGroups };

// What one process and its machine did in one half second.
struct PlayedTick {
  std::array<double, kPlayedGroups> cpu{};      // seconds
  std::array<double, kPlayedGroups> busiest{};  // of the one thread that used most
  double run_queue = 0, gpu_busy = 0, disk_wait = 0, received = 0, sent = 0;
};

// The time line of one process, in ticks. Activities may be added in any order.
class PlayedProcess {
 public:
  static constexpr double kTick = 0.5;

  // `amount` evenly over [begin, end) into what `member` of a tick says.
  template <typename Member>
  void Add(double begin, double end, double amount, Member member) {
    if (!(end > begin) || amount <= 0) return;
    for (auto tick = static_cast<size_t>(begin / kTick); tick * kTick < end; ++tick) {
      const double from = std::max(begin, tick * kTick);
      const double to = std::min(end, (tick + 1) * kTick);
      if (to > from) member(At(tick)) += amount * (to - from) / (end - begin);
    }
  }

  // CPU time of `threads` threads alike. With `slowdown` threads on each core it takes so much
  // longer, which they spend in the run queue.
  void Compute(PlayedGroup group, double begin, double end, double cpu, int32_t threads,
               double slowdown);

  PlayedTick& At(size_t tick) {
    if (tick >= ticks_.size()) ticks_.resize(tick + 1);
    return ticks_[tick];
  }

 private:
  std::vector<PlayedTick> ticks_;
};

// Totals of a process at one moment, which grow as long as it lives.
struct PlayedTotals {
  double at = 0;
  int64_t batches = 0, samples = 0, bytes = 0, steps = 0;
  double busy = 0, work = 0, read = 0;
  StorageEvidence storage;
  std::vector<OperatorEvidence> operators;
  PhaseSeconds phases;
  WaitSeconds waits;
  double checkpoint_count = 0, evaluation_count = 0;
  int64_t skipped = 0;
};

// The latest that was told by then; `history` begins with one at 0.
const PlayedTotals& ToldBy(const std::vector<PlayedTotals>& history, double at);

PhaseSeconds Minus(const PhaseSeconds& a, const PhaseSeconds& b);
WaitSeconds Minus(const WaitSeconds& a, const WaitSeconds& b);

}  // namespace hetero::insight
