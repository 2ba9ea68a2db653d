#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"

namespace hetero::base {

// Which of many equal complaints are worth a line: the first of each kind, then one a minute, and
// no more than 30 a minute of all kinds together. Pure; not thread-safe.
class RefusalThrottle {
 public:
  static constexpr Duration kPeriod = std::chrono::minutes(1);
  static constexpr int kLinesPerPeriod = 30;

  struct Decision {
    bool tell = false;
    int64_t untold = 0;  // of this kind, since its last line
  };
  Decision Admit(const std::string& kind, Instant now) {
    if (now - period_ >= kPeriod) {
      period_ = now;
      told_ = 0;
    }
    // Kinds are the peers' choice, so they are not kept without limit.
    if (kinds_.size() >= kMostKinds && !kinds_.contains(kind)) kinds_.clear();
    auto [entry, fresh] = kinds_.try_emplace(kind);
    const bool due = fresh || now - entry->second.told_at >= kPeriod;
    if (!due || told_ >= kLinesPerPeriod) {
      ++entry->second.untold;
      if (fresh) entry->second.told_at = now - kPeriod;
      return {};
    }
    ++told_;
    const Decision decision{true, entry->second.untold};
    entry->second = {now, 0};
    return decision;
  }

 private:
  static constexpr size_t kMostKinds = 1000;
  struct Kind {
    Instant told_at;
    int64_t untold = 0;
  };
  std::map<std::string, Kind> kinds_;
  Instant period_{-kPeriod};
  int told_ = 0;
};

}  // namespace hetero::base
