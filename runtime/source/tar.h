#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/source/block_reader.h"

namespace hetero::source {

// A file in a tar archive.
struct TarMember {
  std::string name;    // its path, as the archive has it
  int64_t header = 0;  // where its first header begins
  int64_t offset = 0;  // where its bytes begin
  int64_t size = 0;
};

// What a member of so many bytes takes behind its header.
int64_t PaddedInTar(int64_t size);

// Goes through a tar archive (POSIX.1-1988 ustar, POSIX.1-2001 pax, GNU's long names and numbers)
// without reading what is in its files. Of one thread.
class TarReader {
 public:
  explicit TarReader(BlockReader& archive) : archive_(archive) {}

  // The next regular file; false at the end, which is a block of zeros or the archive's last byte.
  // Folders, links and devices are passed over. kDataLoss with the byte: the archive is cut short
  // or damaged; kInvalidArgument: it is none, it is packed, or has what is not read.
  absl::StatusOr<bool> Next(TarMember* member);

 private:
  // What the extended headers before a member say about it.
  struct Extended {
    std::string name;
    int64_t size = -1;  // not said
  };

  absl::Status ReadPax(int64_t offset, int64_t size, Extended* extended);
  absl::StatusOr<std::string> ReadText(int64_t offset, int64_t size, const char* what);

  BlockReader& archive_;
  int64_t next_ = 0;  // where the next header is
};

}  // namespace hetero::source
