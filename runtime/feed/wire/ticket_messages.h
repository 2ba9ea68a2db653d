#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "runtime/feed/wire/batch.h"
#include "runtime/feed/wire/ticket.h"

namespace hetero::v1 {
class FatalSample;
class Ticket;
}  // namespace hetero::v1

// Tickets and what is said of samples, to and from their protos. Internal to wire.
namespace hetero::feed {

inline constexpr size_t kMaxErrorText = 4096;

void ToProto(const Ticket& ticket, v1::Ticket* out);
void ToProto(const FatalSample& sample, v1::FatalSample* out);
FatalSample FromProto(const v1::FatalSample& sample);
// kDataLoss for a split that there is not.
absl::StatusOr<Ticket> FromProto(const v1::Ticket& ticket);

}  // namespace hetero::feed
