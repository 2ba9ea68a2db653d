#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/source/sample_location.h"
#include "runtime/storage/file_descriptor.h"

namespace hetero::source {

// Where the samples of a dataset lie, by id. The table is in memory, or in a file of this machine
// of which a process holds nothing: each look reads 24 bytes, and the system keeps what is read
// often. Thread-safe.
class SampleTable {
 public:
  SampleTable() = default;  // no samples
  explicit SampleTable(std::vector<SampleLocation> samples);

  // `size` locations of `file`, a regular file, from byte `offset` on. Each is read once: `check`
  // gets all of them, in blocks, with the id of each block's first. `where` names the file in
  // messages. kFailedPrecondition: the file ends before them, or is written over later: the At()
  // behind that says so.
  using BlockCheck =
      std::function<absl::Status(int64_t first, absl::Span<const SampleLocation> block)>;
  static absl::StatusOr<SampleTable> InFile(storage::FileDescriptor file, std::string where,
                                            int64_t offset, int64_t size, const BlockCheck& check);

  int64_t size() const { return size_; }
  // Of a sample in [0, size()). An error is the file's, and no sample's.
  absl::StatusOr<SampleLocation> At(int64_t id) const;
  // -1 where there is none.
  int32_t highest_label() const { return highest_label_; }
  // CRC32C of all locations as they are in memory.
  uint32_t checksum() const { return checksum_; }
  // Empty where the table is in a file.
  absl::Span<const SampleLocation> in_memory() const { return samples_; }

 private:
  // Changes with the bytes.
  struct FileState {
    int64_t size;
    int64_t seconds;
    int64_t nanoseconds;
    bool operator==(const FileState&) const = default;
  };
  struct File {
    storage::FileDescriptor descriptor;
    std::string where;
    int64_t offset;
    FileState state;  // as it was opened
  };

  static absl::StatusOr<FileState> StateOf(int file, const std::string& where);
  absl::Status CheckUnchanged() const;
  void Take(absl::Span<const SampleLocation> block);

  int64_t size_ = 0;
  int32_t highest_label_ = -1;
  uint32_t checksum_ = 0;
  std::vector<SampleLocation> samples_;
  std::unique_ptr<const File> file_;
};

}  // namespace hetero::source
