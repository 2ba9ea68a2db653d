// Which producer serves which ticket: the assigning half of Window.
#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/feed/window.h"

namespace hetero::feed {
namespace {

constexpr int64_t kLowWater = 2;  // tickets below which a producer is about to be without work
// From so many tickets of one producer on, if they take it so little, they go there in bundles.
constexpr int64_t kManyTickets = 32;
constexpr double kManySeconds = 0.001;
constexpr double kWorthMoving = 2;  // the owner would take at least this many times longer
constexpr double kNotWorthMovingSeconds = 0.002;

bool Contains(const std::vector<ProducerId>& list, ProducerId id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

}  // namespace

void Window::Assign(base::Instant now, Actions* actions) {
  leavers_serve_ = !SomebodyStays();
  all_rates_.reset();
  AssignStranded(now, actions);
  if (AssignFresh(now, actions)) FeedIdle(now, actions);
}

void Window::AssignStranded(base::Instant now, Actions* actions) {
  for (auto it = stranded_.begin(); it != stranded_.end();) {
    const int64_t ticket = *it;
    Place* place = Find(ticket);
    if (place == nullptr || place->filled || IsServed(ticket, *place)) {
      it = stranded_.erase(it);
      continue;
    }
    std::optional<ProducerId> chosen;
    // A ticket that has failed comes to life with somebody new who could be asked.
    if (!HasFailed(ticket, *place)) chosen = Choose(*place, ticket == head_, now);
    if (!chosen.has_value()) {
      ++it;
      continue;
    }
    Issue(*chosen, ticket, place, now, actions);
    ++reissued_;
    it = stranded_.erase(it);
  }
}

// A message for each of thousands of small batches a second would cost more than the batches. Who
// may have many tickets gets the next ones when a quarter of them is done.
bool Window::HasEnough(const ProducerState& producer) const {
  if (producer.interval().value_or(kManySeconds) >= kManySeconds) return false;
  const int64_t many = std::min(Credit(producer), capacity());
  return many >= kManyTickets && producer.count() > many - many / 4;
}

// False when tickets are left, because nobody has credit for them.
bool Window::AssignFresh(base::Instant now, Actions* actions) {
  std::vector<ProducerId> filling;
  const int64_t end = head_ + static_cast<int64_t>(places_.size());
  for (next_fresh_ = std::max(next_fresh_, head_); next_fresh_ < end; ++next_fresh_) {
    Place* place = Find(next_fresh_);
    if (place->filled) continue;
    const std::optional<ProducerId> chosen = Choose(*place, /*urgent=*/false, now);
    if (!chosen.has_value()) return false;
    if (!Contains(filling, *chosen)) {
      if (HasEnough(producers_.at(*chosen))) return true;
      filling.push_back(*chosen);
    }
    Issue(*chosen, next_fresh_, place, now, actions);
  }
  return true;
}

// Those from whom a ticket may be taken, the one that would be done last on top; of several the
// first by number. Made once, and anew after a ticket has moved, which is rare.
class Window::Owners {
 public:
  Owners(std::map<ProducerId, ProducerState>* producers, base::Instant now)
      : producers_(producers), now_(now) {}

  struct Owner {
    double load = 0;  // seconds until it would be done with what it has
    ProducerId id = 0;
    ProducerState* state = nullptr;
    bool operator<(const Owner& other) const {
      return load < other.load || (load == other.load && id > other.id);
    }
  };
  // The first that is not `idle` itself; null: there is none.
  const Owner* First(ProducerId idle) {
    if (!made_) Make();
    if (heap_.empty()) return nullptr;
    if (heap_.front().id != idle) return &heap_.front();
    // The second of a heap is one of the two below its top.
    if (heap_.size() < 2) return nullptr;
    return heap_.size() == 2 || heap_[2] < heap_[1] ? &heap_[1] : &heap_[2];
  }
  void HaveChanged() { made_ = false; }
  bool empty() {
    if (!made_) Make();
    return heap_.empty();
  }

 private:
  void Make() {
    heap_.clear();
    for (auto& [id, state] : *producers_) {
      if (!state.usable() || state.count() <= state.left_with_owner()) continue;
      const auto waiting = static_cast<double>(state.count());
      const double load = waiting > 0 ? state.ExpectedSeconds(now_) * waiting / (waiting + 1) : 0.0;
      heap_.push_back({load, id, &state});
    }
    std::make_heap(heap_.begin(), heap_.end());
    made_ = true;
  }

  std::map<ProducerId, ProducerState>* const producers_;
  const base::Instant now_;
  bool made_ = false;
  std::vector<Owner> heap_;
};

void Window::FeedIdle(base::Instant now, Actions* actions) {
  Owners owners(&producers_, now);
  if (owners.empty()) return;  // with many workers for each ticket
  for (auto& [id, idle] : producers_) {
    if (!Serves(id, idle)) continue;
    while (idle.count() < std::min(kLowWater, Credit(idle))) {
      const Owners::Owner* const owner = owners.First(id);
      if (owner == nullptr) break;
      const std::optional<int64_t> ticket = owner->state->LastNotBegun();
      Place* place = ticket.has_value() ? Find(*ticket) : nullptr;
      if (place == nullptr || place->filled || Contains(place->holders, id) ||
          place->FailedOn(id)) {
        break;
      }
      // One that was never measured is taken to be as fast as the owner.
      const double each = idle.interval().value_or(owner->state->interval().value_or(0));
      const double here =
          std::max(idle.ExpectedSeconds(now), each * static_cast<double>(idle.count() + 1));
      if (owner->load < kWorthMoving * here + kNotWorthMovingSeconds) break;
      owner->state->Withdraw(*ticket);
      std::erase(place->holders, owner->id);
      actions->cancel.push_back({owner->id, *ticket});
      Issue(id, *ticket, place, now, actions);
      ++moved_;
      owners.HaveChanged();
    }
  }
}

bool Window::IsServed(int64_t ticket, const Place& place) const {
  return std::any_of(place.holders.begin(), place.holders.end(), [&](ProducerId id) {
    const ProducerState& producer = producers_.at(id);
    return !producer.frozen() && !producer.outstanding().at(ticket).overdue;
  });
}

bool Window::Serves(ProducerId id, const ProducerState& producer) const {
  if (!producer.usable() || (producer.leaving() && !leavers_serve_)) return false;
  return id != kLocalProducer || options_.local == Local::kShares;
}

// A worker, that is: own cores alone would be slow. One on trial may fail.
bool Window::SomebodyStays() const {
  return std::any_of(producers_.begin(), producers_.end(), [](const auto& entry) {
    const auto& [id, producer] = entry;
    return id != kLocalProducer && producer.usable() && !producer.leaving() && !producer.on_trial();
  });
}

double Window::StartOf(int32_t rank) {
  constexpr double kGoldenRatio = 0.6180339887498949;
  return std::fmod(kGoldenRatio * rank, 1.0);
}

void Window::FindFirstToAsk() {
  const auto place =
      static_cast<ptrdiff_t>(options_.start * static_cast<double>(producers_.size()));
  first_to_ask_ = std::next(producers_.cbegin(), place);
}

std::optional<ProducerId> Window::Choose(const Place& place, bool urgent, base::Instant now) const {
  if (place.failures.size() >= kMaxFailures && LocalMayTry(place)) return kLocalProducer;
  // What somebody waits for, or has failed already, is no ticket to try a producer with.
  const bool for_trials = place.failures.empty() && !urgent;
  const ProducerState* best = nullptr;
  std::pair<double, int64_t> best_rank;
  ProducerId best_id = kLocalProducer;
  std::optional<ProducerId> on_trial;
  std::optional<ProducerId> leaver;
  bool any = false;
  auto next = first_to_ask_;
  for (size_t left = producers_.size(); left > 0; --left) {
    if (next == producers_.end()) next = producers_.begin();
    const auto& [id, producer] = *next++;
    if (Contains(place.holders, id) || place.FailedOn(id)) continue;
    if (producer.leaving() && producer.usable() && !leavers_serve_ &&
        (urgent || producer.count() < Credit(producer)) &&
        (!leaver.has_value() || producer.count() < producers_.at(*leaver).count())) {
      leaver = id;
    }
    if (!Serves(id, producer)) continue;
    if (producer.on_trial()) {
      if (producer.count() >= Credit(producer)) continue;
      if (!for_trials) {
        on_trial = id;
        continue;
      }
    }
    any = true;
    if (!urgent && !producer.interval().has_value() && producer.count() >= Credit(producer)) {
      continue;
    }
    const std::pair<double, int64_t> rank = {producer.ExpectedSeconds(now), producer.count()};
    if (best != nullptr && best_rank <= rank) continue;
    best = &producer;
    best_rank = rank;
    best_id = id;
  }
  if (!any && on_trial.has_value()) return on_trial;
  if (!any && leaver.has_value()) return leaver;
  if (!any) return ChooseLastResort(place, urgent);
  if (best == nullptr) return std::nullopt;
  // Waiting for a fast worker that is busy beats giving the ticket to a slow one that is free.
  if (best->count() >= Credit(*best) && !urgent) return std::nullopt;
  return best_id;
}

bool Window::LocalMayTry(const Place& place) const {
  const auto local = producers_.find(kLocalProducer);
  return local != producers_.end() && local->second.usable() && !place.FailedOn(kLocalProducer) &&
         !Contains(place.holders, kLocalProducer);
}

std::optional<ProducerId> Window::ChooseLastResort(const Place& place, bool urgent) const {
  const auto may_serve = [&](ProducerId id, const ProducerState& producer) {
    if (!producer.usable() || Contains(place.holders, id)) return false;
    return urgent || producer.count() < Credit(producer);
  };
  const auto local = producers_.find(kLocalProducer);
  if (local != producers_.end() && local->second.usable() && !place.FailedOn(kLocalProducer)) {
    return may_serve(kLocalProducer, local->second) ? std::optional(kLocalProducer) : std::nullopt;
  }
  if (place.failures.empty()) return std::nullopt;
  for (const auto& [id, producer] : producers_) {
    if (may_serve(id, producer)) return id;
  }
  // Nobody is left but those in quarantine: whether it can be served at all must be found out.
  for (const auto& [id, producer] : producers_) {
    if (producer.up() && !producer.frozen() && producer.count() == 0) return id;
  }
  return std::nullopt;
}

double Window::AllRates() const {
  double rates = 0;
  for (const auto& [id, producer] : producers_) {
    if (Serves(id, producer) && producer.interval().has_value()) rates += 1 / *producer.interval();
  }
  return rates;
}

int64_t Window::Credit(const ProducerState& producer) const {
  if (!all_rates_.has_value()) all_rates_ = AllRates();
  return producer.Credit(capacity(), *all_rates_);
}

void Window::Issue(ProducerId id, int64_t ticket, Place* place, base::Instant now,
                   Actions* actions) {
  producers_.at(id).Issue(ticket, now);
  const bool guarded = Guarded(ticket, *place, id);
  if (id != kLocalProducer && place->MayTryUnguarded()) place->unguarded_for_that = id;
  place->holders.push_back(id);
  std::erase(place->with_last_end, id);
  actions->issue.push_back({id, ticket, guarded});
}

}  // namespace hetero::feed
