#include "runtime/feed/window.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/log.h"

namespace hetero::feed {
namespace {

using std::chrono::milliseconds;

constexpr base::Duration kMinReissueDelay = milliseconds(200);
constexpr base::Duration kUnmeasuredReissueDelay = milliseconds(1000);
constexpr int kReissueFactor = 3;
constexpr double kHorizonSeconds = 1.0;  // of work given to one producer in advance
constexpr double kSmoothing = 0.25;      // weight of the newest interval
constexpr double kShortestInterval = 1e-6;
constexpr double kForgetFactor = 10;  // idle for so many of its intervals: its rate is old news

bool Contains(const std::vector<ProducerId>& list, ProducerId id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

}  // namespace

Window::Window(Options options) : options_(std::move(options)) {
  if (options_.local) producers_[kLocalProducer].up = true;
  Extend();
}

Window::Actions Window::Apply(const Event& event, base::Instant now) {
  Actions actions;
  std::visit([&](const auto& e) { Handle(e, now, &actions); }, event);
  Extend();
  JudgeHead(now);
  Assign(now, &actions);
  return actions;
}

void Window::Handle(const WorkerAdded& event, base::Instant, Actions*) {
  producers_.try_emplace(event.producer);
}

void Window::Handle(const WorkerRemoved& event, base::Instant, Actions*) {
  if (Producer* producer = FindProducer(event.producer)) {
    ReleaseAll(event.producer, producer);
    producers_.erase(event.producer);
  }
}

void Window::Handle(const StreamUp& event, base::Instant now, Actions*) {
  if (Producer* producer = FindProducer(event.producer)) {
    producer->up = true;
    producer->silent_since = now;
  }
}

void Window::Handle(const StreamDown& event, base::Instant, Actions*) {
  if (Producer* producer = FindProducer(event.producer)) {
    producer->up = false;
    producer->frozen = false;
    ReleaseAll(event.producer, producer);
  }
}

void Window::Handle(const Started& event, base::Instant now, Actions*) {
  Producer* producer = FindProducer(event.producer);
  if (producer == nullptr) return;
  NoteSignOfLife(producer, now);
  const auto it = producer->outstanding.find(event.ticket);
  if (it != producer->outstanding.end()) it->second.started = now;
}

void Window::Handle(const Arrived& event, base::Instant now, Actions* actions) {
  if (Producer* producer = FindProducer(event.producer)) {
    const bool was_frozen = producer->frozen;
    NoteSignOfLife(producer, now);
    const auto it = producer->outstanding.find(event.ticket);
    if (it != producer->outstanding.end()) {
      if (!was_frozen) Measure(event.producer, producer, it->second, now);
      producer->outstanding.erase(it);
    }
    producer->last_arrival = now;
  }
  Slot* slot = Find(event.ticket);
  if (slot == nullptr || slot->filled) {
    ++duplicates_;
    return;
  }
  std::erase(slot->holders, event.producer);
  Fill(event.ticket, slot, actions);
  actions->accepted = true;
}

void Window::Handle(const Failed& event, base::Instant now, Actions*) {
  Producer* producer = FindProducer(event.producer);
  if (producer == nullptr) return;
  NoteSignOfLife(producer, now);
  if (producer->outstanding.erase(event.ticket) == 0) return;
  Slot* slot = Find(event.ticket);
  if (slot == nullptr || slot->filled) return;
  std::erase(slot->holders, event.producer);
  slot->failed_on.push_back(event.producer);
  slot->error = event.error;
}

void Window::Handle(const Consumed&, base::Instant, Actions*) {
  if (head_state() != HeadState::kFilled) {
    log::Error("a batch was consumed before it arrived", {{"ticket", head_}});
    std::abort();
  }
  slots_.pop_front();
  ++head_;
}

void Window::Handle(const CapacityChanged& event, base::Instant, Actions*) {
  options_.capacity = event.capacity;
}

void Window::Handle(const Tick&, base::Instant, Actions*) {}

Window::Slot* Window::Find(int64_t ticket) {
  const int64_t position = ticket - head_;
  if (position < 0 || position >= static_cast<int64_t>(slots_.size())) return nullptr;
  return &slots_[static_cast<size_t>(position)];
}

Window::Producer* Window::FindProducer(ProducerId id) {
  const auto it = producers_.find(id);
  return it == producers_.end() ? nullptr : &it->second;
}

void Window::Extend() {
  int64_t end = head_ + static_cast<int64_t>(slots_.size());
  for (; end < options_.tickets && end < head_ + options_.capacity; ++end) {
    slots_.emplace_back();
    slots_.back().filled = options_.is_empty && options_.is_empty(end);
  }
}

void Window::ReleaseAll(ProducerId id, Producer* producer) {
  for (const auto& [ticket, unused] : producer->outstanding) {
    if (Slot* slot = Find(ticket)) std::erase(slot->holders, id);
  }
  producer->outstanding.clear();
}

void Window::NoteSignOfLife(Producer* producer, base::Instant now) {
  // What was measured before or during the silence says nothing about the worker now.
  if (producer->frozen) producer->interval.reset();
  producer->frozen = false;
  producer->silent_since = now;
}

void Window::Measure(ProducerId id, Producer* producer, const Outstanding& done,
                     base::Instant now) {
  if (!done.started.has_value()) return;
  if (id != kLocalProducer) service_times_.Add(now - *done.started);
  const double interval = std::max(
      kShortestInterval, base::ToSeconds(now - std::max(producer->last_arrival, *done.started)));
  producer->interval = producer->interval.has_value()
                           ? *producer->interval + kSmoothing * (interval - *producer->interval)
                           : interval;
}

void Window::Fill(int64_t ticket, Slot* slot, Actions* actions) {
  slot->filled = true;
  for (const ProducerId id : slot->holders) {
    Producer* holder = FindProducer(id);
    const auto it = holder->outstanding.find(ticket);
    // A started one cannot be called back: it stays on the holder's account until it arrives.
    if (it->second.started.has_value()) continue;
    // The last ticket of a frozen producer is left with it: its answer is how it comes back.
    if (holder->frozen && holder->outstanding.size() == 1) continue;
    holder->outstanding.erase(it);
    actions->cancel.push_back({id, ticket});
  }
  slot->holders.clear();
}

base::Duration Window::ReissueDelay() const {
  const std::optional<base::Duration> median = service_times_.median();
  if (!median.has_value()) return kUnmeasuredReissueDelay;
  return std::max(kMinReissueDelay, kReissueFactor * *median);
}

void Window::JudgeHead(base::Instant now) {
  if (head_state() != HeadState::kWaiting) return;
  const base::Duration delay = ReissueDelay();
  for (const ProducerId id : slots_.front().holders) {
    Producer& producer = producers_.at(id);
    Outstanding& ticket = producer.outstanding.at(head_);
    if (ticket.started.has_value() && now - *ticket.started > delay) ticket.overdue = true;
    // A slow worker is not a dead one: it may be silent for as long as its own batches take.
    const base::Duration own = base::FromSeconds(kReissueFactor * producer.interval.value_or(0));
    if (now - producer.silent_since > std::max(delay, own)) producer.frozen = true;
  }
}

void Window::Assign(base::Instant now, Actions* actions) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    const int64_t ticket = head_ + static_cast<int64_t>(i);
    if (slot.filled || slot.failed_on.size() >= kMaxFailures || IsServed(ticket, slot)) continue;
    const std::optional<ProducerId> chosen = Choose(slot, i == 0 && slot.issues > 0, now);
    if (chosen.has_value()) {
      Issue(*chosen, ticket, &slot, now, actions);
    } else if (slot.issues == 0) {
      return;  // no credit is left, and later tickets have no better claim
    }
  }
}

bool Window::IsServed(int64_t ticket, const Slot& slot) const {
  return std::any_of(slot.holders.begin(), slot.holders.end(), [&](ProducerId id) {
    const Producer& producer = producers_.at(id);
    return !producer.frozen && !producer.outstanding.at(ticket).overdue;
  });
}

std::optional<ProducerId> Window::Choose(const Slot& slot, bool urgent, base::Instant now) const {
  const Producer* best = nullptr;
  ProducerId best_id = kLocalProducer;
  bool any_worker = false;
  for (const auto& [id, producer] : producers_) {
    if (id == kLocalProducer || !producer.up || producer.frozen) continue;
    if (Contains(slot.holders, id) || Contains(slot.failed_on, id)) continue;
    any_worker = true;
    const bool full = static_cast<int64_t>(producer.outstanding.size()) >= Credit(producer);
    if (full && !urgent && !producer.interval.has_value()) continue;
    const auto rank = [&](const Producer& p) {
      return std::pair(ExpectedSeconds(p, now), p.outstanding.size());
    };
    if (best == nullptr || rank(producer) < rank(*best)) {
      best = &producer;
      best_id = id;
    }
  }
  if (!any_worker) return ChooseLastResort(slot, urgent);
  if (best == nullptr) return std::nullopt;
  // Waiting for a fast worker that is busy beats giving the ticket to a slow one that is free.
  const bool full = static_cast<int64_t>(best->outstanding.size()) >= Credit(*best);
  if (full && !urgent) return std::nullopt;
  return best_id;
}

std::optional<ProducerId> Window::ChooseLastResort(const Slot& slot, bool urgent) const {
  const auto may_serve = [&](ProducerId id, const Producer& producer) {
    if (!producer.up || producer.frozen || Contains(slot.holders, id)) return false;
    return urgent || static_cast<int64_t>(producer.outstanding.size()) < Credit(producer);
  };
  const auto local = producers_.find(kLocalProducer);
  if (local != producers_.end() && !Contains(slot.failed_on, kLocalProducer)) {
    return may_serve(kLocalProducer, local->second) ? std::optional(kLocalProducer) : std::nullopt;
  }
  if (slot.failed_on.empty()) return std::nullopt;
  for (const auto& [id, producer] : producers_) {
    if (may_serve(id, producer)) return id;
  }
  return std::nullopt;
}

double Window::ExpectedSeconds(const Producer& producer, base::Instant now) const {
  const double waiting = static_cast<double>(producer.outstanding.size());
  double interval = producer.interval.value_or(0);
  const double silence = base::ToSeconds(now - producer.silent_since);
  // Without a new try, one bad measurement would shut a worker out for good.
  if (waiting == 0 && silence > kForgetFactor * interval) return 0;
  // A worker that has slowed down shows it by its silence before it shows it by an arrival.
  if (waiting > 0) interval = std::max(interval, silence);
  return (waiting + 1) * interval;
}

int64_t Window::Credit(const Producer& producer) const {
  if (!producer.interval.has_value()) return kFirstCredit;
  double rates = 0;
  for (const auto& [id, other] : producers_) {
    if (id != kLocalProducer && other.up && !other.frozen && other.interval.has_value()) {
      rates += 1 / *other.interval;
    }
  }
  const double rate = 1 / *producer.interval;
  const double share = static_cast<double>(options_.capacity) * rate / std::max(rates, rate);
  const double credit = std::min(share, 1 + kHorizonSeconds * rate);
  return std::max(kFirstCredit, static_cast<int64_t>(std::ceil(credit)));
}

void Window::Issue(ProducerId id, int64_t ticket, Slot* slot, base::Instant now, Actions* actions) {
  Producer& producer = producers_.at(id);
  if (producer.outstanding.empty()) producer.silent_since = now;
  producer.outstanding[ticket] = {};
  slot->holders.push_back(id);
  if (slot->issues++ > 0) ++reissued_;
  actions->issue.push_back({id, ticket});
}

Window::HeadState Window::head_state() const {
  if (head_ >= options_.tickets) return HeadState::kEnd;
  const Slot& slot = slots_.front();
  if (slot.filled) return HeadState::kFilled;
  return slot.failed_on.size() >= kMaxFailures ? HeadState::kFailed : HeadState::kWaiting;
}

absl::Status Window::head_error() const {
  return head_state() == HeadState::kFailed ? slots_.front().error : absl::OkStatus();
}

int64_t Window::outstanding(ProducerId producer) const {
  const auto it = producers_.find(producer);
  return it == producers_.end() ? 0 : static_cast<int64_t>(it->second.outstanding.size());
}

bool Window::frozen(ProducerId producer) const {
  const auto it = producers_.find(producer);
  return it != producers_.end() && it->second.frozen;
}

}  // namespace hetero::feed
