#pragma once

#include <utility>
#include <vector>

#include "simulation/timeline.h"

namespace hetero::feed::simulation {

// What every simulated process can suffer: to be frozen (SIGSTOP) and continued. What reaches a
// frozen process waits and is carried out, in order, when it goes on.
class Process {
 public:
  bool frozen(base::Instant now) const { return now < frozen_until_; }
  void FreezeUntil(base::Instant time) { frozen_until_ = std::max(frozen_until_, time); }
  // Carries `action` out as soon as this process runs. The process must outlive the timeline.
  void Run(Timeline* timeline, Timeline::Action action) {
    if (!frozen(timeline->now())) return action();
    timeline->At(frozen_until_, [this, timeline, action = std::move(action)]() mutable {
      Run(timeline, std::move(action));
    });
  }

 private:
  base::Instant frozen_until_;
};

}  // namespace hetero::feed::simulation
