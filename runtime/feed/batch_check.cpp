// What a trainer can tell of a batch that it did not make.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/feed/sample_label.h"
#include "runtime/feed/sample_producer.h"

namespace hetero::feed {
namespace {

// "label float32 [4]"; "no label".
std::string Text(const std::vector<job::FieldSpec>& specs) {
  std::string text;
  for (const job::FieldSpec& spec : specs) {
    if (!text.empty()) text += ", ";
    text += job::FieldHeading(spec.name, job::NameOf(spec.type), spec.shape);
    text.pop_back();
  }
  return text.empty() ? "no label" : text;
}

std::string Text(const job::FieldSet& fields) { return fields ? Text(*fields) : "classes"; }

absl::Status CheckFields(const job::FieldSet& wanted, const Batch& batch) {
  job::FieldSet found;
  if (batch.fields) found.emplace();
  for (size_t i = 0; batch.fields && i < batch.fields->size(); ++i) {
    found->push_back((*batch.fields)[i].spec);
  }
  if (found == wanted) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("samples with ", Text(found), " where this job's have ", Text(wanted)));
}

}  // namespace

absl::Status SampleProducer::CheckBatch(const Batch& batch) const {
  const Ticket& ticket = batch.ticket;
  if (!cut(ticket.split).CanLeave(ticket.left_to_trainer)) {
    return absl::FailedPreconditionError(
        absl::StrCat("leaves ", ticket.left_to_trainer,
                     " operators to the trainer, where the pipeline cannot be cut"));
  }
  const api::ImageShape shape = FrontOutput(ticket.split, ticket.left_to_trainer);
  if (batch.shape != shape) {
    return absl::FailedPreconditionError(absl::StrCat(
        "pictures of ", batch.shape.height, "x", batch.shape.width, "x", batch.shape.channels,
        " where this job's are ", shape.height, "x", shape.width, "x", shape.channels));
  }
  if (batch.views != cut(ticket.split).front(ticket.left_to_trainer).views()) {
    return absl::FailedPreconditionError(
        absl::StrCat(batch.views, " views of a sample where this job has ",
                     cut(ticket.split).front(ticket.left_to_trainer).views()));
  }
  HETERO_RETURN_IF_ERROR(CheckFields(fields(ticket.split), batch));
  const job::Permutation order = OrderOf(ticket);
  for (int64_t i = 0; i < batch.count(); ++i) {
    if (labels_are_classes_) HETERO_RETURN_IF_ERROR(CheckClass(ClassOf(batch, i)));
    const int64_t own = order.At(ticket.slots.first + i);
    if (batch.sample_ids[static_cast<size_t>(i)] == own) continue;
    HETERO_RETURN_IF_ERROR(CheckSample(batch, i, own));
  }
  return absl::OkStatus();
}

absl::Status SampleProducer::CheckClass(int64_t label) const {
  if (label >= 0 && label < train_->classes()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("label ", label, " where this job has ", train_->classes(), " classes"));
}

// Of an entry that is not its slot's own sample: only what replaces that may be there.
absl::Status SampleProducer::CheckSample(const Batch& batch, int64_t index, int64_t own) const {
  const int64_t slot = batch.ticket.slots.first + index;
  const int64_t id = batch.sample_ids[static_cast<size_t>(index)];
  const bool said =
      std::any_of(batch.bad_samples.begin(), batch.bad_samples.end(), [&](const BadSample& bad) {
        return bad.slot == slot && bad.sample_id == own && bad.replacement_id == id;
      });
  for (int32_t attempt = 1; said && attempt <= kMaxCandidates; ++attempt) {
    if (ReplacementOf(batch.ticket, slot, attempt) == id) return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("sample ", id, " where slot ", slot, " of epoch ", batch.ticket.epoch,
                   " has sample ", own, " of ", dataset(batch.ticket.split).size(),
                   ": it does not see the data that this rank sees"));
}

}  // namespace hetero::feed
