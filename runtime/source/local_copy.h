#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/storage/file_descriptor.h"

namespace hetero::source {

// The object at `uri`, open to be read on this machine: of file:// the file itself, else a copy of
// one version of it in TMPDIR, which has no name and goes with the last descriptor. kNotFound:
// there is no such object. Errors name the object, or TMPDIR.
absl::StatusOr<storage::FileDescriptor> OpenLocally(const std::string& uri);

}  // namespace hetero::source
