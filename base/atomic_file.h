#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hetero::base {

// Replaces the file at `path` by `bytes`, or leaves it as it was: written to a temporary name in
// the same folder, synced, renamed, folder synced. After OK the file survives a power cut. Errors
// name the path and the system's reason, e.g. ResourceExhausted when no space is left; the
// temporary file is removed. The folder must exist. Concurrent writers: the last rename wins.
absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes);

// Makes what was created, renamed or removed in `folder` survive a power cut.
absl::Status SyncFolder(const std::string& folder);

// More than any file that people write.
inline constexpr int64_t kMaxTextBytes = int64_t{64} << 20;
// The whole file. NotFound when it does not exist; OutOfRange when it has more than `limit` bytes,
// for which no memory is asked; other errors name path and reason.
absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t limit = kMaxTextBytes);

}  // namespace hetero::base
