#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace hetero::feed {

// The median of the latest kKept service times (start to arrival of a ticket). Not thread-safe.
class ServiceTimes {
 public:
  static constexpr size_t kKept = 63;

  void Add(base::Duration time);
  // Absent before the first Add().
  std::optional<base::Duration> median() const { return median_; }

 private:
  std::vector<base::Duration> latest_;  // a ring once it is full
  size_t next_ = 0;
  std::optional<base::Duration> median_;
};

}  // namespace hetero::feed
