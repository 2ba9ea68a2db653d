#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/storage/store.h"

namespace hetero::storage {

// In the last part of the name of a file that is being written.
inline constexpr std::string_view kTemporaryMark = ".hetero-writing-";

// "1732465800.123456789", of the file's last change.
std::string FileVersion(const struct stat& info);

// The files below the folder `root` whose names begin with `prefix`, as of OpenFileStore(), sorted.
absl::StatusOr<std::vector<Object>> ListFiles(const std::string& root, std::string_view prefix);

}  // namespace hetero::storage
