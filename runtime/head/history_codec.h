#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "hetero/v1/history.pb.h"

// A History as the text that others keep for the next head: the operator in status.history, a local
// job in a file. Pure.
namespace hetero::head {

// Of status.history and of HETERO_HISTORY, in bytes of text.
inline constexpr size_t kMaxHistoryText = 8192;
// Of the file of a local job.
inline constexpr size_t kMaxHistoryFile = size_t{1} << 20;

// At most `limit` bytes. What does not fit is left out, the least telling first: points of the loss
// curve, details of members (their sums stay), faults between the first and the newest.
std::string EncodeHistory(v1::History history, size_t limit);

// Whoever may write the status or the file may have written anything: every number is finite and
// not negative, lists have bounds, and the history is that of `run`, which has not come further
// than attempt `attempt`. Otherwise kInvalidArgument says what is wrong.
absl::StatusOr<v1::History> DecodeHistory(std::string_view text, const std::string& run,
                                          int32_t attempt);

}  // namespace hetero::head
