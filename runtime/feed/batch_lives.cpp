#include "runtime/feed/batch_lives.h"

#include <algorithm>
#include <limits>

namespace hetero::feed {
namespace {

// What a producer tells, of which it may be wrong: within [0, most].
base::Duration Told(double seconds, base::Duration most) {
  if (!(seconds > 0)) return base::Duration::zero();  // NaN too
  return seconds < base::ToSeconds(most) ? base::FromSeconds(seconds) : most;
}

}  // namespace

bool BatchLives::IsSampled(const Ticket& ticket) {
  return ticket.split == job::Split::kTrain && (ticket.step < kFirst || ticket.step % kOneOf == 0);
}

void BatchLives::OnAsked(ProducerId producer, const Ticket& ticket, base::Instant now,
                         base::WallTime wall) {
  if (IsSampled(ticket)) asked_[{ticket.id, producer}] = {now, wall};
}

void BatchLives::OnArrived(ProducerId producer, base::Instant now, Batch* batch) {
  const auto found = asked_.find({batch->ticket.id, producer});
  if (found == asked_.end()) return;
  const base::Duration all = std::max(now - found->second.at, base::Duration::zero());
  BatchTimes times{.asked = found->second.wall};
  times.queued = Told(batch->queued_seconds, all);
  times.work = Told(batch->work_seconds, all - times.queued);
  times.transfer = all - times.queued - times.work;
  times.read = Told(batch->read_seconds, times.work);
  times.received = now;
  batch->times = times;
}

void BatchLives::Forget(int64_t ticket) {
  constexpr ProducerId kFirstProducer = std::numeric_limits<ProducerId>::min();
  asked_.erase(asked_.begin(), asked_.lower_bound({ticket + 1, kFirstProducer}));
}

}  // namespace hetero::feed
