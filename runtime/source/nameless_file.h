#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/storage/file_descriptor.h"

namespace hetero::source {

// A new file of this machine's disk without a name, which goes with its last descriptor.
class NamelessFile {
 public:
  // In TMPDIR, else in /tmp. Errors name the folder.
  static absl::StatusOr<NamelessFile> Create();

  // Errors name TMPDIR and the folder. Safe from several threads, as are reads of the descriptor.
  absl::Status WriteAt(int64_t offset, absl::Span<const uint8_t> bytes) const;
  int get() const { return file_.get(); }
  storage::FileDescriptor Release() && { return std::move(file_); }

 private:
  NamelessFile(std::string folder, storage::FileDescriptor file)
      : folder_(std::move(folder)), file_(std::move(file)) {}

  std::string folder_;
  storage::FileDescriptor file_;
};

}  // namespace hetero::source
