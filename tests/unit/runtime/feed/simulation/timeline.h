#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "base/clock.h"

namespace hetero::feed::simulation {

// Random numbers that are the same on every machine and in every version of the library
// (SplitMix64, Steele et al. 2014).
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 0x5851F42D4C957F2Du) {}
  uint64_t Next();
  // In [low, high].
  int64_t Between(int64_t low, int64_t high);
  // In [0, 1).
  double Fraction();
  bool Chance(double probability) { return Fraction() < probability; }
  // Log-uniform, so that small and large ones are equally likely.
  base::Duration Time(base::Duration low, base::Duration high);

 private:
  uint64_t state_;
};

// The one clock of a simulated world: actions in the order of their time, and of their scheduling
// where times are equal. Keeps the trace.
class Timeline {
 public:
  using Action = std::function<void()>;

  explicit Timeline(bool tracing) : tracing_(tracing) {}

  base::Instant now() const { return now_; }
  void At(base::Instant time, Action action);
  void After(base::Duration delay, Action action) { At(now_ + delay, std::move(action)); }
  // Moves to the next action and carries it out; false when there is none.
  bool RunOne();

  bool tracing() const { return tracing_; }
  // One line of the trace, with the time before it. Callers check tracing() first.
  void Trace(const std::string& line);
  // The newest lines.
  std::string trace() const;

 private:
  struct Entry {
    base::Instant time;
    int64_t order;
    Action action;
    bool operator>(const Entry& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  base::Instant now_ = base::Instant() + std::chrono::seconds(1000);
  int64_t next_order_ = 0;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> entries_;
  bool tracing_;
  std::vector<std::string> lines_;
};

}  // namespace hetero::feed::simulation
