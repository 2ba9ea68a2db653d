#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/source/block_reader.h"
#include "runtime/source/parquet_footer.h"
#include "runtime/source/parquet_page.h"
#include "runtime/source/unpacked_pieces.h"

// What pages of a Parquet column hold, without their compression. Internal to parquet. Messages do
// not name the file.
namespace hetero::source {

// kInvalidArgument for a codec or an encoding that is not read, which `found` names, with what to
// do.
absl::Status ParquetNotRead(const std::string& found);

// Reads the pages of one row group's part of a column. Of one thread.
class ParquetPageReader {
 public:
  // Pages of more than `most_bytes`, either way, are refused by kInvalidArgument.
  ParquetPageReader(BlockReader& file, const ParquetColumn& column, int64_t codec,
                    int64_t most_bytes);

  struct Values {
    ParquetLevels levels;
    std::span<const uint8_t> bytes;  // until the next page is read
    PackedPiece piece;               // of the file, which holds them
    int64_t begin = 0;               // where `bytes` begin in it, once it is unpacked
  };
  absl::StatusOr<Values> Data(const ParquetPage& page);
  // Its levels are empty.
  absl::StatusOr<Values> Dictionary(const ParquetPage& page);

 private:
  // Sets the piece's compression and unpacks it.
  absl::StatusOr<std::span<const uint8_t>> Unpack(const ParquetPage& page,
                                                  std::span<const uint8_t> bytes, bool packed,
                                                  PackedPiece* piece);
  absl::StatusOr<std::span<const uint8_t>> Raw(const ParquetPage& page);

  BlockReader& file_;
  const ParquetColumn& column_;
  const int64_t codec_;
  const int64_t most_bytes_;
  std::vector<uint8_t> unpacked_;
};

}  // namespace hetero::source
