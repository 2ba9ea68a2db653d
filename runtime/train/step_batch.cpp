#include "runtime/train/step_batch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hetero::train {

absl::Status CheckTicket(const feed::Batch& batch, const job::SlotRange& slots, int64_t step) {
  const feed::Ticket& ticket = batch.ticket;
  if (ticket.split == job::Split::kTrain && ticket.step == step && ticket.slots == slots &&
      batch.count() == slots.count) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(
      "the input gave ", batch.count(), " samples from slot ", ticket.slots.first, " of step ",
      ticket.step, " where step ", step, " needs ", slots.count, " from slot ", slots.first));
}

absl::Status CheckEvaluationTicket(const feed::Batch& batch, const job::PlannedBatch& planned) {
  const feed::Ticket& ticket = batch.ticket;
  if (ticket.split == planned.split && ticket.step == planned.step &&
      ticket.slots == planned.slots && batch.count() == planned.slots.count) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(
      "the input gave ", batch.count(), " ",
      ticket.split == job::Split::kValidation ? "validation" : "training", " samples from slot ",
      ticket.slots.first, " of batch ", ticket.step, " where batch ", planned.step,
      " of an evaluation needs ", planned.slots.count, " from slot ", planned.slots.first));
}

absl::StatusOr<std::unique_ptr<feed::Batch>> EvaluationBatches::Next(std::stop_token stop) {
  absl::StatusOr<std::unique_ptr<feed::Batch>> batch = stream_.Next(std::move(stop));
  if (!batch.ok()) return batch;
  HETERO_RETURN_IF_ERROR(CheckEvaluationTicket(**batch, schedule_.At(index_)));
  ++index_;
  return batch;
}

RankState StateFor(const absl::StatusOr<std::unique_ptr<feed::Batch>>& batch, uint64_t seed) {
  RankState state;
  if (!batch.ok()) {
    state.error = batch.status();
    return state;
  }
  const feed::Batch& held = **batch;
  state.samples = held.count();
  for (int64_t i = 0; i < held.count(); ++i) {
    const auto at = static_cast<size_t>(i);
    state.digest.Add(seed, held.ticket.epoch, held.ticket.step, held.ticket.slots.first + i,
                     held.sample_ids[at], held.crcs[at]);
  }
  return state;
}

}  // namespace hetero::train
