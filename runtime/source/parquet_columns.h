#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "runtime/source/block_reader.h"
#include "runtime/source/parquet_footer.h"
#include "runtime/source/shard_scan.h"
#include "runtime/source/unpacked_pieces.h"

// The two columns that a job reads. Internal to parquet. Messages do not name the file.
namespace hetero::source {

// Where a null picture "lies": no bytes at the file's front, where no picture is.
inline constexpr int64_t kNullPicture = 0;

// Appends where each row's picture lies: in the file, where its page is PLAIN and uncompressed,
// else in `pieces`, to which the pages or the dictionary that hold them are added.
// kInvalidArgument: a codec or an encoding that is not read, or packed pages of more than 64 MiB;
// kDataLoss: they are damaged.
absl::Status FindParquetPictures(BlockReader& file, const ParquetColumn& column,
                                 const ParquetChunk& chunk, int64_t rows, PackedPieces* pieces,
                                 std::vector<SampleLocation>* pictures);

struct ParquetNumber {
  bool is_null = false;
  int64_t whole = 0;  // of INT32 and INT64; a uint64 beyond int64 becomes negative
  double real = 0;    // of FLOAT and DOUBLE
};

// Calls `visit` with each row's number, in their order. kInvalidArgument: pages of a codec or an
// encoding that is not read, or of more than 16 MiB; kDataLoss: they are damaged.
absl::Status ReadParquetNumbers(BlockReader& file, const ParquetColumn& column,
                                const ParquetChunk& chunk, int64_t rows,
                                absl::FunctionRef<void(const ParquetNumber& number)> visit);

}  // namespace hetero::source
