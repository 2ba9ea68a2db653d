#include "simulation/timeline.h"

#include <cmath>
#include <cstdio>
#include <utility>

namespace hetero::feed::simulation {
namespace {
constexpr size_t kLinesPrinted = 600;
}

uint64_t Dice::Next() {
  uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

int64_t Dice::Between(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(Next() % static_cast<uint64_t>(high - low + 1));
}

double Dice::Fraction() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

base::Duration Dice::Time(base::Duration low, base::Duration high) {
  const double from = std::log(base::ToSeconds(low)), to = std::log(base::ToSeconds(high));
  return base::FromSeconds(std::exp(from + Fraction() * (to - from)));
}

void Timeline::At(base::Instant time, Action action) {
  entries_.push({std::max(time, now_), next_order_++, std::move(action)});
}

bool Timeline::RunOne() {
  if (entries_.empty()) return false;
  Action action = std::move(const_cast<Entry&>(entries_.top()).action);
  now_ = entries_.top().time;
  entries_.pop();
  action();
  return true;
}

void Timeline::Trace(const std::string& line) {
  char time[32];
  std::snprintf(time, sizeof time, "%12.3f ms  ",
                1e3 * base::ToSeconds(now_ - base::Instant() - std::chrono::seconds(1000)));
  lines_.push_back(time + line);
}

std::string Timeline::trace() const {
  std::string text;
  const size_t first = lines_.size() > kLinesPrinted ? lines_.size() - kLinesPrinted : 0;
  if (first > 0) text += "(" + std::to_string(first) + " earlier lines left out)\n";
  for (size_t i = first; i < lines_.size(); ++i) text += lines_[i] + "\n";
  return text;
}

}  // namespace hetero::feed::simulation
