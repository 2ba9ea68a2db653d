#include "runtime/feed/batch_finisher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hetero::feed {

bool BatchFinisher::Add(Half half) {
  const base::MutexLock lock(mutex_);
  std::deque<Half>& of_ticket = halves_[half.batch->ticket.id];
  of_ticket.push_back(std::move(half));
  return of_ticket.size() == 1;
}

std::shared_ptr<const Batch> BatchFinisher::First(int64_t ticket) const {
  const base::MutexLock lock(mutex_);
  const auto found = halves_.find(ticket);
  return found == halves_.end() ? nullptr : found->second.front().batch;
}

std::optional<BatchFinisher::Half> BatchFinisher::DropFirst(int64_t ticket) {
  Half dropped;  // destroyed without the lock
  const base::MutexLock lock(mutex_);
  const auto found = halves_.find(ticket);
  if (found == halves_.end()) return std::nullopt;
  dropped = std::move(found->second.front());
  found->second.pop_front();
  if (!found->second.empty()) return found->second.front();
  halves_.erase(found);
  return std::nullopt;
}

absl::Status BatchFinisher::Check(const Ticket& ticket) const {
  const std::shared_ptr<const Batch> half = First(ticket.id);
  if (half == nullptr) {
    return absl::InternalError(absl::StrCat("ticket ", ticket.id, " has nothing to finish"));
  }
  Ticket whole = ticket;
  whole.left_to_trainer = half->ticket.left_to_trainer;
  if (absl::Status status = producer_.Check(whole); !status.ok()) return status;
  const api::ImageShape shape = producer_.FrontOutput(ticket.split, whole.left_to_trainer);
  if (half->shape == shape) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("ticket ", ticket.id,
                   ": the worker's pictures have another shape than the job's pipeline "
                   "gives there; do trainer and worker run the same job?"));
}

Batch BatchFinisher::Allocate(const Ticket& ticket, const SlabSource& slabs) const {
  Batch batch = producer_.Allocate(ticket, slabs);
  if (const std::shared_ptr<const Batch> half = First(ticket.id)) {
    batch.labels = half->labels;
    batch.fields = half->fields;
    batch.sample_ids = half->sample_ids;
  }
  return batch;
}

absl::Status BatchFinisher::Produce(Batch* batch, int64_t index,
                                    std::optional<BadSample>* bad) const {
  bad->reset();
  const std::shared_ptr<const Batch> half = First(batch->ticket.id);
  if (half == nullptr) return absl::CancelledError("the ticket was given up");
  const int64_t slot = batch->ticket.slots.first + index;
  const auto known = std::find_if(half->bad_samples.begin(), half->bad_samples.end(),
                                  [slot](const BadSample& b) { return b.slot == slot; });
  if (known != half->bad_samples.end()) *bad = *known;
  return producer_.FinishSample(*half, index, batch);
}

}  // namespace hetero::feed
