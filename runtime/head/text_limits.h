#pragma once

#include <cstddef>
#include <string>

#include "base/utf8.h"

// Texts that others say, in bytes. What the head passes on has to fit into what its readers take:
// gRPC 4 MiB of a message, the operator 64 KiB of a status (operator/reconcile/head_limits.h).
namespace hetero::head {

inline constexpr size_t kMaxText = 4096;       // of a message
inline constexpr size_t kMaxListedText = 512;  // of one of many
inline constexpr size_t kMostReported = 64;    // names that a script reports numbers by
inline constexpr size_t kMaxReportedName = 64;

// Never in the middle of a character.
inline void LimitText(size_t most, std::string& text) {
  if (text.size() > most) text = base::ToUtf8(text, most);
}

}  // namespace hetero::head
