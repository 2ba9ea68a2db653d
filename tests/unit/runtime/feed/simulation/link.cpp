#include "simulation/link.h"

#include <algorithm>
#include <utility>

namespace hetero::feed::simulation {

base::Duration Link::OneWay() {
  return distance_ + weather_->delay +
         base::FromSeconds(dice_->Fraction() * base::ToSeconds(weather_->jitter));
}

void Link::Send(Direction direction, int64_t connection, const Timeline::Action& arrive) {
  if (connection == 0 || connection != connection_) return;
  if (dice_->Chance(weather_->lose)) return;
  base::Instant time = timeline_->now() + OneWay();
  if (dice_->Chance(weather_->reorder)) {
    time += OneWay() * 10;
  } else {
    time = last_arrival_[direction] = std::max(time, last_arrival_[direction]);
  }
  const auto deliver = [=, this] { Deliver(direction, connection, arrive); };
  timeline_->At(time, deliver);
  if (dice_->Chance(weather_->duplicate)) timeline_->At(time + OneWay() * 3, deliver);
}

void Link::Deliver(Direction direction, int64_t connection, Timeline::Action arrive) {
  if (cut()) {  // the sender's system repeats it until the network is back
    timeline_->At(cut_until_ + OneWay(), [=, this] { Deliver(direction, connection, arrive); });
    return;
  }
  const bool current = connection == connection_;
  if (!current && (direction == kToWorker || !dice_->Chance(weather_->late_after_cut))) return;
  arrive();
}

}  // namespace hetero::feed::simulation
