#include "runtime/feed/wire/ticket_messages.h"

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "hetero/v1/feed.pb.h"

namespace hetero::feed {

void ToProto(const Ticket& ticket, v1::Ticket* out) {
  out->set_id(ticket.id);
  out->set_generation(ticket.generation);
  out->set_rank(ticket.rank);
  out->set_split(ticket.split == job::Split::kTrain ? v1::TRAIN : v1::VALIDATION);
  out->set_epoch(ticket.epoch);
  out->set_step(ticket.step);
  out->set_first_slot(ticket.slots.first);
  out->set_count(ticket.slots.count);
  out->set_left_to_trainer(ticket.left_to_trainer);
  out->set_guarded(ticket.guarded);
}

void ToProto(const FatalSample& sample, v1::FatalSample* out) {
  out->set_split(sample.split == job::Split::kTrain ? v1::TRAIN : v1::VALIDATION);
  out->set_sample_id(sample.id);
  out->set_reason(base::ToUtf8(sample.reason, kMaxErrorText));
}

FatalSample FromProto(const v1::FatalSample& sample) {
  return {sample.split() == v1::VALIDATION ? job::Split::kValidation : job::Split::kTrain,
          sample.sample_id(), base::ToUtf8(sample.reason(), kMaxErrorText)};
}

absl::StatusOr<Ticket> FromProto(const v1::Ticket& ticket) {
  if (ticket.split() != v1::TRAIN && ticket.split() != v1::VALIDATION) {
    return absl::DataLossError(absl::StrCat("ticket ", ticket.id(), " has unknown split ",
                                            static_cast<int>(ticket.split())));
  }
  const auto split = ticket.split() == v1::TRAIN ? job::Split::kTrain : job::Split::kValidation;
  return Ticket{ticket.id(),
                ticket.generation(),
                ticket.rank(),
                split,
                ticket.epoch(),
                ticket.step(),
                {ticket.first_slot(), ticket.count()},
                ticket.left_to_trainer(),
                ticket.guarded()};
}

}  // namespace hetero::feed
