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

  // Both are safe from several threads. Errors name TMPDIR and the folder, and where the disk is
  // full say what to do. kOutOfRange: the file has not so many bytes.
  absl::Status WriteAt(int64_t offset, absl::Span<const uint8_t> bytes) const;
  absl::Status ReadAt(int64_t offset, absl::Span<uint8_t> out) const;
  int get() const { return file_.get(); }
  storage::FileDescriptor Release() && { return std::move(file_); }

 private:
  NamelessFile(std::string folder, storage::FileDescriptor file)
      : folder_(std::move(folder)), file_(std::move(file)) {}

  std::string folder_;
  storage::FileDescriptor file_;
};

}  // namespace hetero::source
