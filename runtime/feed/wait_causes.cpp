#include "runtime/feed/wait_causes.h"

#include <algorithm>

namespace hetero::feed {

void WaitJournal::OnWorkers(int64_t connected, base::Instant now) {
  if (connected == 0) {
    if (!down_since_) down_since_ = now;
  } else if (down_since_) {
    down_ = DownUntil(now);
    down_since_.reset();
  }
}

base::Duration WaitJournal::DownUntil(base::Instant now) const {
  return down_since_ ? down_ + (now - *down_since_) : down_;
}

void WaitJournal::OnStarted(ProducerId producer, int64_t ticket, base::Instant now) {
  started_[{ticket, producer}] = now;
}

void WaitJournal::OnArrived(ProducerId producer, int64_t ticket, double work_seconds,
                            base::Instant now) {
  Arrival arrival{.produced = now, .arrived = now};
  const auto started = started_.find({ticket, producer});
  if (started != started_.end()) {
    arrival.produced = std::min(now, started->second + base::FromSeconds(work_seconds));
  }
  arrivals_[ticket] = arrival;
}

void WaitJournal::OnWaitBegan(base::Instant now) {
  waiting_ = true;
  wait_began_ = now;
  down_at_begin_ = DownUntil(now);
}

WaitCauses WaitJournal::OnWaitEnded(int64_t ticket, base::Instant now) {
  waiting_ = false;
  base::Duration rest = now - wait_began_;
  base::Duration transfer{0};
  base::Duration handover{0};
  if (const auto found = arrivals_.find(ticket); found != arrivals_.end()) {
    const base::Instant arrived = std::clamp(found->second.arrived, wait_began_, now);
    const base::Instant produced = std::clamp(found->second.produced, wait_began_, arrived);
    handover = now - arrived;
    transfer = arrived - produced;
    rest = produced - wait_began_;
  }
  const base::Duration down = std::min(rest, DownUntil(now) - down_at_begin_);
  Forget(ticket);
  return {.no_worker = base::ToSeconds(down),
          .workers = base::ToSeconds(rest - down),
          .transfer = base::ToSeconds(transfer),
          .handover = base::ToSeconds(handover)};
}

void WaitJournal::Forget(int64_t ticket) {
  arrivals_.erase(arrivals_.begin(), arrivals_.upper_bound(ticket));
  started_.erase(started_.begin(), started_.lower_bound({ticket + 1, kLocalProducer}));
}

}  // namespace hetero::feed
