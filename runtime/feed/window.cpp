#include "runtime/feed/window.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace hetero::feed {
namespace {

using std::chrono::milliseconds;

constexpr base::Duration kMinReissueDelay = milliseconds(200);
constexpr base::Duration kUnmeasuredReissueDelay = milliseconds(1000);
constexpr int kReissueFactor = 3;
constexpr int kPatienceFactor = 10;  // of the delay, where that is long

// A producer's error with a code that says nothing about the stream as a whole: where it fails,
// kAborted, kCancelled and kOutOfRange mean that the rank shall leave, stop, or has it all.
absl::Status NotOfTheStream(const absl::Status& error) {
  if (!absl::IsAborted(error) && !absl::IsCancelled(error) && !absl::IsOutOfRange(error)) {
    return error;
  }
  return absl::InternalError(error.message());
}

}  // namespace

Window::Window(Options options) : options_(std::move(options)) {
  if (options_.local != Local::kOff) producers_[kLocalProducer].SetUp(base::Instant());
  FindFirstToAsk();
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
  FindFirstToAsk();
}

void Window::Handle(const WorkerRemoved& event, base::Instant, Actions* actions) {
  if (const ProducerState* producer = FindProducer(event.producer)) {
    ReleaseAll(event.producer, *producer, /*gone=*/true, actions);
    producers_.erase(event.producer);
    FindFirstToAsk();
    told_quarantined_.erase(event.producer);
  }
}

void Window::Handle(const WorkerTurned& event, base::Instant, Actions* actions) {
  ProducerState* producer = FindProducer(event.producer);
  if (producer == nullptr) return;
  producer->set_leaving(event.leaving);
  // The answers of a frozen one are how it comes back; its tickets went elsewhere already.
  if (event.leaving && !producer->frozen() && SomebodyStays()) {
    TakeBack(event.producer, producer, actions);
  }
}

void Window::Handle(const StreamUp& event, base::Instant now, Actions*) {
  ProducerState* producer = FindProducer(event.producer);
  if (producer == nullptr) return;
  producer->SetUp(now);
  // It is the same process: a new one would be another producer.
  for (Place& place : places_) {
    std::erase_if(place.ended,
                  [&](const Place::End& end) { return end.producer == event.producer; });
  }
}

void Window::Handle(const StreamDown& event, base::Instant, Actions* actions) {
  if (ProducerState* producer = FindProducer(event.producer)) {
    ReleaseAll(event.producer, *producer, /*gone=*/true, actions);
    producer->SetDown();
  }
}

void Window::Handle(const Started& event, base::Instant now, Actions*) {
  if (ProducerState* producer = FindProducer(event.producer)) producer->Started(event.ticket, now);
}

void Window::Handle(const Arrived& event, base::Instant now, Actions* actions) {
  if (ProducerState* producer = FindProducer(event.producer)) {
    const std::optional<base::Duration> service = producer->Arrived(event.ticket, event.work, now);
    if (told_quarantined_.erase(event.producer) > 0) actions->recovered.push_back(event.producer);
    if (service.has_value() && event.producer != kLocalProducer) service_times_.Add(*service);
  }
  Place* place = Find(event.ticket);
  if (place == nullptr || place->filled) {
    ++duplicates_;
    return;
  }
  options_.batch_bytes = std::max(options_.batch_bytes, event.bytes);
  met_fatal_ |= event.fatal;
  std::erase(place->holders, event.producer);
  Fill(event.ticket, place, actions);
  actions->accepted = true;
}

void Window::Handle(const Failed& event, base::Instant now, Actions* actions) {
  ProducerState* producer = FindProducer(event.producer);
  if (producer == nullptr) return;
  const bool had = producer->Has(event.ticket);
  if (producer->Failed(event.ticket, now)) {
    Quarantine(event.producer, producer, event.error, actions);
  }
  Place* place = Find(event.ticket);
  if (!had || place == nullptr || place->filled) return;
  std::erase(place->holders, event.producer);
  place->failures.push_back({event.producer, producer->arrived()});
  place->error = event.error;
  if (absl::IsResourceExhausted(event.error)) ++place->starved;
  if (absl::IsDeadlineExceeded(event.error)) {
    place->took_too_long = true;
    if (event.producer == kLocalProducer && place->charges() == 0) suspects_take_too_long_ = true;
  }
  stranded_.insert(event.ticket);
}

void Window::Handle(const Consumed&, base::Instant, Actions*) {
  if (head_state() != HeadState::kFilled) {
    log::Error("a batch was consumed before it arrived", {{"ticket", head_}});
    std::abort();
  }
  places_.pop_front();
  ++head_;
}

void Window::Handle(const LocalChanged& event, base::Instant, Actions*) {
  if (options_.local != Local::kOff) options_.local = event.local;
}

void Window::Handle(const Tick&, base::Instant now, Actions* actions) {
  for (auto& [id, producer] : producers_) producer.JudgeQuarantine(now);
  if (head_state() == HeadState::kWaiting) ResetDebtors(now, actions);
}

Window::Place* Window::Find(int64_t ticket) {
  const int64_t position = ticket - head_;
  if (position < 0 || position >= static_cast<int64_t>(places_.size())) return nullptr;
  return &places_[static_cast<size_t>(position)];
}

ProducerState* Window::FindProducer(ProducerId id) {
  const auto it = producers_.find(id);
  return it == producers_.end() ? nullptr : &it->second;
}

int64_t Window::capacity() const {
  if (options_.batch_bytes == 0) return kMinCapacity;
  return std::clamp<int64_t>(options_.byte_budget / options_.batch_bytes, kMinCapacity,
                             std::max(kMinCapacity, options_.max_capacity));
}

void Window::Extend() {
  int64_t end = head_ + static_cast<int64_t>(places_.size());
  for (; end < options_.tickets && end < head_ + capacity(); ++end) {
    places_.emplace_back();
    places_.back().filled = options_.is_empty && options_.is_empty(end);
  }
}

void Window::ReleaseAll(ProducerId id, const ProducerState& producer, bool gone, Actions* actions) {
  for (const auto& [ticket, unused] : producer.outstanding()) {
    Place* place = Find(ticket);
    if (place == nullptr) continue;
    std::erase(place->holders, id);
    stranded_.insert(ticket);
    // One that was frozen too: a sample may take long before it ends its process.
    if (gone && !place->filled && producer.MayHaveBegun(ticket)) {
      place->AddEnd(id);
      if (place->charges() == 1) CallBackFromLocal(ticket, place, actions);
    }
  }
}

// What was given to the own cores before its first charge would be produced there unguarded.
void Window::CallBackFromLocal(int64_t ticket, Place* place, Actions* actions) {
  ProducerState* local = FindProducer(kLocalProducer);
  if (local == nullptr || !local->Has(ticket) || local->HasBegun(ticket)) return;
  local->Withdraw(ticket);
  std::erase(place->holders, kLocalProducer);
  actions->cancel.push_back({kLocalProducer, ticket});
}

bool Window::Guarded(int64_t ticket, const Place& place, ProducerId id) const {
  const bool own = id == kLocalProducer;
  // What nobody has ended of is slow, as far as is known: a child's minute is not enough for it.
  const bool slow = place.took_too_long && place.charges() == 0;
  if (!own && (slow || place.MayTryUnguarded())) return false;
  if (own && options_.suspect.has_value() && !suspects_take_too_long_ &&
      ticket < *options_.suspect + capacity()) {
    return true;
  }
  const bool careful = met_fatal_ || own;
  return place.charges() + LateHolders(ticket, place) > (careful ? 0 : kMostUnguarded);
}

int Window::LateHolders(int64_t ticket, const Place& place) const {
  return static_cast<int>(
      std::count_if(place.holders.begin(), place.holders.end(), [&](ProducerId id) {
        const ProducerState& holder = producers_.at(id);
        const bool late = holder.frozen() || holder.outstanding().at(ticket).overdue;
        return id != kLocalProducer && late && holder.MayHaveBegun(ticket);
      }));
}

// What it has begun stays with it: a batch would end the quarantine.
void Window::Quarantine(ProducerId id, ProducerState* producer, const absl::Status& error,
                        Actions* actions) {
  if (told_quarantined_.insert(id).second) actions->quarantined.push_back({id, error});
  TakeBack(id, producer, actions);
}

void Window::TakeBack(ProducerId id, ProducerState* producer, Actions* actions) {
  while (const std::optional<int64_t> ticket = producer->LastNotBegun()) {
    producer->Withdraw(*ticket);
    actions->cancel.push_back({id, *ticket});
    Place* place = Find(*ticket);
    if (place == nullptr) continue;
    std::erase(place->holders, id);
    stranded_.insert(*ticket);
  }
}

bool Window::Place::FailedOn(ProducerId id) const {
  return std::any_of(failures.begin(), failures.end(),
                     [id](const Failure& failure) { return failure.producer == id; });
}

int Window::Place::counted_charges() const {
  const auto counts = [](const End& end) { return end.counts; };
  return static_cast<int>(std::count_if(ended.begin(), ended.end(), counts)) + starved;
}

void Window::Place::AddEnd(ProducerId id) {
  const bool counts = std::erase(with_last_end, id) == 0;
  ended.push_back({id, counts});
  if (counts) with_last_end = holders;
}

bool Window::Place::MayTryUnguarded() const {
  if (!took_too_long || !unguarded_for_that.has_value()) return took_too_long;
  const ProducerId tried = *unguarded_for_that;
  const bool holds = std::find(holders.begin(), holders.end(), tried) != holders.end();
  const bool gone = std::any_of(ended.begin(), ended.end(),
                                [&](const End& end) { return end.producer == tried; });
  return !holds && !gone && !FailedOn(tried);  // it was taken from it before it had begun
}

bool Window::HasFailed(int64_t ticket, const Place& place) const {
  if (place.counted_charges() >= kMostCharges) return true;
  if (place.failures.size() < kMaxFailures || IsServed(ticket, place)) return false;
  if (LocalMayTry(place)) return false;
  if (place.failures.size() >= kMostFailures) return true;
  const bool untried = std::any_of(producers_.begin(), producers_.end(), [&](const auto& entry) {
    return entry.first != kLocalProducer && entry.second.usable() && !place.FailedOn(entry.first);
  });
  if (!untried) return true;
  std::set<ProducerId> healthy;  // of those that failed it: a batch has come from them since
  for (const Place::Failure& failure : place.failures) {
    const auto producer = producers_.find(failure.producer);
    if (producer == producers_.end() || !producer->second.usable()) continue;
    if (producer->second.arrived() > failure.arrived) healthy.insert(failure.producer);
  }
  return healthy.size() >= kMaxFailures;
}

void Window::Fill(int64_t ticket, Place* place, Actions* actions) {
  place->filled = true;
  patience_ = kPatience;
  for (const ProducerId id : place->holders) {
    ProducerState& holder = producers_.at(id);
    // A started one cannot be called back: it stays on the holder's account until it arrives.
    if (holder.HasBegun(ticket)) continue;
    // The last ticket of a frozen producer is left with it: its answer is how it comes back.
    if (holder.frozen() && holder.count() == 1) continue;
    holder.Withdraw(ticket);
    actions->cancel.push_back({id, ticket});
  }
  place->holders.clear();
}

base::Duration Window::ReissueDelay() const {
  const std::optional<base::Duration> median = service_times_.median();
  if (!median.has_value()) return kUnmeasuredReissueDelay;
  return std::max(kMinReissueDelay, kReissueFactor * *median);
}

void Window::JudgeHead(base::Instant now) {
  if (head_state() != HeadState::kWaiting) return;
  const base::Duration delay = ReissueDelay();
  for (const ProducerId id : places_.front().holders) {
    ProducerState& producer = producers_.at(id);
    if (producer.JudgeOverdue(head_, delay, now)) stranded_.insert(head_);
    if (!producer.frozen() && producer.JudgeFrozen(delay, now)) {
      for (const auto& [ticket, unused] : producer.outstanding()) {
        if (Find(ticket) != nullptr) stranded_.insert(ticket);
      }
    }
  }
}

void Window::ResetDebtors(base::Instant now, Actions* actions) {
  const base::Duration patience = std::max(patience_, kPatienceFactor * ReissueDelay());
  for (auto& [id, producer] : producers_) {
    if (id == kLocalProducer || producer.LongestDebt(now) <= patience) continue;
    ReleaseAll(id, producer, /*gone=*/false, actions);
    producer.SetDown();
    actions->reset.push_back(id);
    patience_ = 2 * patience;
  }
}

Window::HeadState Window::head_state() const {
  if (head_ >= options_.tickets) return HeadState::kEnd;
  const Place& place = places_.front();
  if (place.filled) return HeadState::kFilled;
  return HasFailed(head_, place) ? HeadState::kFailed : HeadState::kWaiting;
}

absl::Status Window::head_error() const {
  if (head_state() != HeadState::kFailed) return absl::OkStatus();
  const Place& place = places_.front();
  if (place.counted_charges() < kMostCharges) return NotOfTheStream(place.error);
  return absl::InternalError(absl::StrCat(
      place.charges(), " processes ended while they prepared it, the last ones although its ",
      "samples were in child processes; see the CPU workers' logs, and give them more memory",
      place.error.ok() ? "" : absl::StrCat("; ", place.error.message())));
}

int64_t Window::outstanding(ProducerId producer) const {
  const auto it = producers_.find(producer);
  return it == producers_.end() ? 0 : it->second.count();
}

bool Window::frozen(ProducerId producer) const {
  const auto it = producers_.find(producer);
  return it != producers_.end() && it->second.frozen();
}

double Window::worker_rate() const {
  double rate = 0;
  const bool leavers_rest = SomebodyStays();
  for (const auto& [id, producer] : producers_) {
    if (id == kLocalProducer || !producer.usable() || !producer.interval()) continue;
    if (producer.leaving() && leavers_rest) continue;
    rate += 1 / *producer.interval();
  }
  return rate;
}

int64_t Window::connected_workers() const {
  return std::count_if(producers_.begin(), producers_.end(), [](const auto& entry) {
    return entry.first != kLocalProducer && entry.second.up();
  });
}

bool Window::waits_for_late_local() const {
  const auto local = producers_.find(kLocalProducer);
  if (local == producers_.end() || head_state() != HeadState::kWaiting) return false;
  const auto ticket = local->second.outstanding().find(head_);
  if (ticket == local->second.outstanding().end()) return false;
  return local->second.frozen() || ticket->second.overdue;
}

}  // namespace hetero::feed
