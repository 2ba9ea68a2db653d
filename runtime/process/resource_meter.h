#pragma once

#include <map>
#include <optional>

#include "base/resource_use.h"
#include "runtime/insight/resource_use.h"

namespace hetero::process {

// From readings of totals, one after the other, what was used between two. Pure; not thread-safe.
class ResourceMeter {
 public:
  // What was used in the `seconds` (> 0) since the reading before; with the first one by the
  // process since it began, which then says how long ago that was, and nothing of the machine.
  // The CPU time of threads that have ended is the group's "other"; a sum of groups is never less
  // than the process and its children have used, and never more but for what the clocks differ.
  insight::UsePoint Next(const base::ResourceTotals& totals, double seconds);

 private:
  void AddThreads(const base::ResourceTotals& totals, insight::UsePoint& point);
  void AddChildren(const base::ResourceTotals& totals, insight::UsePoint& point);
  void AddMachine(const base::ResourceTotals& totals, insight::UsePoint& point) const;

  std::optional<base::ResourceTotals> before_;
  std::map<pid_t, base::TaskUse> threads_;   // as they were read last
  std::map<pid_t, base::TaskUse> children_;  // likewise, their threads
  double told_own_ = 0;                      // of the process' time, in groups
  double told_children_ = 0;                 // of the children's
};

}  // namespace hetero::process
