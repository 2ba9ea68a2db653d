#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/source/block_reader.h"

// What a Parquet file says of itself at its end
// (https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift). Internal
// to parquet. Messages do not name the file.
namespace hetero::source {

// As the format numbers them.
enum class ParquetType : int64_t {
  kBoolean = 0,
  kInt32 = 1,
  kInt64 = 2,
  kInt96 = 3,
  kFloat = 4,
  kDouble = 5,
  kByteArray = 6,
  kFixedLengthByteArray = 7,
};
std::string NameOf(ParquetType type);

// "SNAPPY", "PLAIN"; "codec 17" for one that the format does not have.
std::string ParquetCodecName(int64_t codec);
std::string ParquetEncodingName(int64_t encoding);

// A column of values: a leaf of the schema.
struct ParquetColumn {
  std::string path;  // "image.bytes"
  ParquetType type = ParquetType::kByteArray;
  bool repeated = false;       // it, or a group that it is in
  int definition = 0;          // the level of a value that is there: how many of these may be null
  bool unsigned_word = false;  // an INT32 that holds uint32
  bool scaled = false;         // a DECIMAL with digits behind its point
};

// A column's part of a row group.
struct ParquetChunk {
  int64_t begin = 0;  // of its first page, in the file
  int64_t end = 0;
  int64_t codec = 0;
};

struct ParquetRowGroup {
  int64_t rows = 0;
  std::vector<ParquetChunk> chunks;  // of the columns that were asked for, in that order
};

class ParquetFooter {
 public:
  ParquetFooter(ParquetFooter&&) = default;  // no copies: it points into what it holds
  ParquetFooter& operator=(ParquetFooter&&) = default;

  // kInvalidArgument: no Parquet file, or one that is encrypted; kDataLoss: a damaged one.
  static absl::StatusOr<ParquetFooter> Read(BlockReader& file);

  const std::vector<ParquetColumn>& columns() const { return columns_; }
  // What is kept under `key`; empty: nothing is.
  std::string_view Metadata(std::string_view key) const;
  // The row groups with their parts of `columns`, which are numbers of columns().
  absl::StatusOr<std::vector<ParquetRowGroup>> RowGroups(std::span<const size_t> columns) const;

 private:
  ParquetFooter() = default;
  absl::Status Parse();
  absl::StatusOr<ParquetChunk> ReadChunk(std::span<const uint8_t> chunk,
                                         const ParquetColumn& column) const;

  std::vector<uint8_t> bytes_;
  int64_t begin_ = 0;  // of the footer in the file: where data ends
  std::vector<ParquetColumn> columns_;
  std::span<const uint8_t> row_groups_;  // in bytes_, as the other
  std::span<const uint8_t> metadata_;
};

inline constexpr char kParquetMagic[] = "PAR1";

}  // namespace hetero::source
