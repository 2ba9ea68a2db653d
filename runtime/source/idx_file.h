#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/job/schedule.h"
#include "runtime/storage/store.h"

// Files of the IDX format, whatever they hold. Internal to idx.
namespace hetero::source {

// Where the files are.
struct IdxFolder {
  std::string name;                       // a path, or the URI of a store
  const storage::Store* store = nullptr;  // null: a folder of this machine
};

struct IdxFile {
  std::string path;
  std::vector<uint8_t> bytes;  // decompressed, header included

  // The big-endian header word `index`.
  uint32_t Word(size_t index) const {
    const uint8_t* at = bytes.data() + 4 * index;
    return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | uint32_t{at[3]};
  }
};

// "train-labels-idx1-ubyte" and with a dot; plain files come first: they need no decompression.
std::array<std::string, 4> IdxSpellings(job::Split split, std::string_view noun, size_t dimensions,
                                        std::string_view type);

// The first of `names` that is in `folder`; an empty path when none is. kDataLoss,
// kResourceExhausted or the storage's error name the file.
absl::StatusOr<IdxFile> LoadIdx(const IdxFolder& folder, const std::array<std::string, 4>& names);

// Whether `expected` bytes follow a header of so many.
absl::Status CheckIdxBody(const IdxFile& file, std::string_view noun, size_t header,
                          uint64_t expected);

}  // namespace hetero::source
