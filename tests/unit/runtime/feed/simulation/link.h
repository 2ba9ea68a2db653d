#pragma once

#include <array>
#include <cstdint>

#include "simulation/timeline.h"

namespace hetero::feed::simulation {

// How bad a world is. Probabilities are per message, or per second where it says so.
struct Weather {
  base::Duration delay = std::chrono::microseconds(100);  // one way
  base::Duration jitter{0};
  double reorder = 0;
  double duplicate = 0;
  double lose = 0;            // without breaking the connection
  double late_after_cut = 0;  // a broken connection's message arrives nevertheless
  double fail_ticket = 0;
  double crash_per_second = 0;   // of some worker
  double freeze_per_second = 0;  // of some worker
  double slow_per_second = 0;    // some worker goes on at a tenth of its speed, or normally again
  double cut_per_second = 0;     // of some worker's network
  double pause_per_second = 0;   // of some trainer
  double notice_per_second = 0;  // of some worker, whose machine is about to go
  // In worlds that have a head.
  double drain_per_second = 0;        // some worker is told to go, and goes
  double rank_death_per_second = 0;   // of some rank
  double group_break_per_second = 0;  // between living ranks
  double head_loss_per_second = 0;
};

// The stream between one trainer and one worker. A connection has a number; what was sent over an
// earlier one is lost, but for late_after_cut.
class Link {
 public:
  enum Direction { kToWorker, kToTrainer };

  // `distance` is what the way to this worker takes longer than the weather says.
  Link(Timeline* timeline, Dice* dice, const Weather* weather, base::Duration distance)
      : timeline_(timeline), dice_(dice), weather_(weather), distance_(distance) {}

  int64_t connection() const { return connection_; }  // 0: none
  bool cut() const { return timeline_->now() < cut_until_; }
  base::Instant cut_until() const { return cut_until_; }
  void CutUntil(base::Instant time) { cut_until_ = std::max(cut_until_, time); }
  int64_t Connect() { return connection_ = next_connection_++; }
  void Break() { connection_ = 0; }
  // Delivers `arrive` at the other end, zero to two times.
  void Send(Direction direction, int64_t connection, const Timeline::Action& arrive);

 private:
  base::Duration OneWay();
  void Deliver(Direction direction, int64_t connection, Timeline::Action arrive);

  Timeline* timeline_;
  Dice* dice_;
  const Weather* weather_;
  const base::Duration distance_;
  int64_t connection_ = 0;
  int64_t next_connection_ = 1;
  base::Instant cut_until_;
  std::array<base::Instant, 2> last_arrival_;  // by direction: a stream keeps its order
};

}  // namespace hetero::feed::simulation
