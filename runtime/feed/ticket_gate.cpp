#include "runtime/feed/ticket_gate.h"

#include <algorithm>

namespace hetero::feed {

void TicketGate::Leave(Owner owner, const Trainer& trainer) {
  if (!trainer.waiting.empty()) turns_.erase(TurnOf(owner, trainer));
}

void TicketGate::Return(Owner owner, const Trainer& trainer) {
  if (!trainer.waiting.empty()) {
    turns_.insert(TurnOf(owner, trainer));
  } else if (trainer.held == 0) {
    trainers_.erase(owner);
  }
}

void TicketGate::Ask(Owner owner, Key key, int64_t bytes) {
  Trainer& trainer = trainers_[owner];
  Leave(owner, trainer);
  trainer.waiting.push_back({next_order_++, key, bytes});
  Return(owner, trainer);
}

bool TicketGate::Withdraw(Owner owner, Key key) {
  const auto found = trainers_.find(owner);
  if (found == trainers_.end()) return false;
  Trainer& trainer = found->second;
  Leave(owner, trainer);
  const bool waited =
      std::erase_if(trainer.waiting, [key](const Waiting& one) { return one.key == key; }) > 0;
  Return(owner, trainer);
  return waited;
}

std::optional<TicketGate::Key> TicketGate::Next() {
  if (turns_.empty()) return std::nullopt;
  const Owner owner = std::get<2>(*turns_.begin());
  Trainer& trainer = trainers_.at(owner);
  const Waiting next = trainer.waiting.front();
  const bool leaves_room = trainer.held > 0 && streams_ > 1;
  const int64_t most = leaves_room ? most_bytes_ - most_bytes_ / 4 : most_bytes_;
  if (held_ > 0 && next.bytes > most - held_) return std::nullopt;
  Leave(owner, trainer);
  trainer.waiting.pop_front();
  trainer.held += next.bytes;
  held_ += next.bytes;
  Return(owner, trainer);
  return next.key;
}

void TicketGate::Release(Owner owner, int64_t bytes) {
  held_ -= bytes;
  const auto found = trainers_.find(owner);
  if (found == trainers_.end()) return;  // it held nothing but what has no bytes
  Leave(owner, found->second);
  found->second.held -= bytes;
  Return(owner, found->second);
}

}  // namespace hetero::feed
