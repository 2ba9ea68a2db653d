#include "simulation/worker.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace hetero::feed::simulation {
namespace {

constexpr int64_t kBatchBytes = 40;

// A trainer's stream: what one that broke still holds is not the next one's.
TicketGate::Owner OwnerOf(const Order& order) {
  return static_cast<TicketGate::Owner>(order.trainer) << 32 |
         static_cast<TicketGate::Owner>(order.connection);
}

}  // namespace

// And half a batch, since no memory is a whole number of them.
TicketGate Worker::GateOf(const Options& options) {
  return TicketGate(options.memory == 0 ? TicketGate::kNoLimit
                                        : options.memory * kBatchBytes + kBatchBytes / 2);
}

int64_t Worker::most_held() const { return most_held_ / kBatchBytes; }

void Worker::Start() {
  alive_ = true;
  ++life_;
}

void Worker::Crash() {
  alive_ = false;
  ++life_;
  queue_.clear();
  waiting_.clear();
  streams_.clear();
  gate_ = GateOf(options_);
  busy_ = 0;
}

void Worker::Submit(const Order& order) {
  if (!alive_) return;
  const TicketGate::Key key = next_key_++;
  waiting_[key] = order;
  if (streams_.insert(OwnerOf(order)).second) gate_.Join();
  gate_.Ask(OwnerOf(order), key, kBatchBytes);
  TakeUp();
}

void Worker::TakeUp() {
  while (const std::optional<TicketGate::Key> next = gate_.Next()) {
    queue_.push_back(waiting_.extract(*next).mapped());
  }
  most_held_ = std::max(most_held_, gate_.held());
  Serve();
}

void Worker::Release(const Order& order) {
  gate_.Release(OwnerOf(order), kBatchBytes);
  TakeUp();
}

void Worker::Cancel(int32_t trainer, int64_t ticket) {
  CancelIf([&](const Order& o) { return o.trainer == trainer && o.ticket == ticket; });
}

void Worker::CancelAll(int32_t trainer) {
  const auto of_trainer = [&](TicketGate::Owner owner) {
    return owner >> 32 == static_cast<TicketGate::Owner>(trainer);
  };
  for (size_t ended = std::erase_if(streams_, of_trainer); ended > 0; --ended) gate_.Part();
  CancelIf([&](const Order& o) { return o.trainer == trainer; });
}

void Worker::CancelIf(const std::function<bool(const Order&)>& goes) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto next = std::next(it);
    if (goes(it->second)) {
      gate_.Withdraw(OwnerOf(it->second), it->first);
      waiting_.erase(it);
    }
    it = next;
  }
  std::vector<Order> gone;
  std::erase_if(queue_, [&](const Order& o) {
    if (goes(o)) gone.push_back(o);
    return goes(o);
  });
  for (const Order& order : gone) Release(order);
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
  if (options_.sending == base::Duration(0)) return Release(order);
  timeline_->After(options_.sending, [this, order, life = life_] {
    if (life == life_) Release(order);
  });
  Serve();
}

}  // namespace hetero::feed::simulation
