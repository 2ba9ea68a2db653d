#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace hetero::install {

// Makes `path` a file of `bytes` that everybody may read, and run if `executable`: written to a
// temporary name beside it, renamed, and read again. A file that has these bytes is left alone. Not
// synced: after a power cut all of it is made anew. ResourceExhausted: the volume is full. The
// folder is made when it is not there.
absl::Status PutFile(const std::string& path, std::string_view bytes, bool executable);

}  // namespace hetero::install
