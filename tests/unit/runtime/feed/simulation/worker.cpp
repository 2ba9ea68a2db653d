#include "simulation/worker.h"

namespace hetero::feed::simulation {

void Worker::Start() {
  alive_ = true;
  ++life_;
}

void Worker::Crash() {
  alive_ = false;
  ++life_;
  queue_.clear();
  busy_ = 0;
}

void Worker::Submit(const Order& order) {
  if (!alive_) return;
  queue_.push_back(order);
  Serve();
}

void Worker::Cancel(int32_t trainer, int64_t ticket) {
  std::erase_if(queue_, [&](const Order& o) { return o.trainer == trainer && o.ticket == ticket; });
}

void Worker::CancelAll(int32_t trainer) {
  std::erase_if(queue_, [&](const Order& o) { return o.trainer == trainer; });
}

void Worker::Serve() {
  while (busy_ < options_.threads && !queue_.empty()) {
    const Order order = queue_.front();
    queue_.pop_front();
    ++busy_;
    callbacks_.on_started(order);
    const double factor = 1 + options_.spread * (2 * dice_->Fraction() - 1);
    const base::Duration work =
        base::FromSeconds(base::ToSeconds(options_.service) * factor / speed_);
    timeline_->After(work, [this, order, work, life = life_] {
      Run(timeline_, [this, order, work, life] {
        if (life == life_) Finish(order, work);
      });
    });
  }
}

void Worker::Finish(const Order& order, base::Duration work) {
  --busy_;
  ++served_;
  callbacks_.on_done(order, work);
  Serve();
}

}  // namespace hetero::feed::simulation
