#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/source/block_reader.h"
#include "runtime/source/parquet_footer.h"

// The pages of a Parquet column. Internal to parquet. Messages do not name the file.
namespace hetero::source {

inline constexpr int64_t kParquetPlain = 0;
inline constexpr int64_t kParquetUncompressed = 0;

// A page as its header has it.
struct ParquetPage {
  enum class Kind { kData, kIndex, kDictionary, kDataV2 };
  Kind kind = Kind::kData;
  int64_t begin = 0;  // of what stands behind the header, in the file
  int64_t bytes = 0;
  int64_t uncompressed = 0;  // bytes, once it is decompressed
  int64_t values = 0;        // with those that are null
  int64_t encoding = kParquetPlain;
  int64_t level_encoding = 3;       // RLE
  int64_t definition_bytes = 0;     // of a kDataV2, whose levels stand in front, not compressed
  int64_t repetition_bytes = 0;     // of a kDataV2
  bool compressed_if_codec = true;  // a kDataV2 may say that it is not

  bool is_data() const { return kind == Kind::kData || kind == Kind::kDataV2; }
  bool is_dictionary_encoded() const { return encoding == 2 || encoding == 8; }
};

// Calls `visit` with each page of a row group's part of a column, until its pages have `rows`
// values. kDataLoss: a damaged page, or fewer values.
absl::Status WalkParquetPages(BlockReader& file, const ParquetChunk& chunk, int64_t rows,
                              absl::FunctionRef<absl::Status(const ParquetPage& page)> visit);

// Numbers of a few bits each, as runs and in packs
// (https://github.com/apache/parquet-format/blob/master/Encodings.md#RLE): levels, and places in a
// dictionary.
class ParquetRuns {
 public:
  // `width` bits each, from 0 to 32.
  ParquetRuns(std::span<const uint8_t> bytes, int width) : bytes_(bytes), width_(width) {}
  // False: the bytes end.
  bool Next(uint32_t* number);

 private:
  bool NextRun();
  uint32_t Packed();

  std::span<const uint8_t> bytes_;
  const int width_;
  uint64_t left_ = 0;  // of the run
  bool packed_ = false;
  uint32_t value_ = 0;  // of a run that is not packed
  std::span<const uint8_t> pack_;
  uint64_t bit_ = 0;  // of the next number in pack_
};

// Which values of a page are there.
class ParquetLevels {
 public:
  // Of a column where none can be missing, or whose levels are `bytes`. They are copied.
  ParquetLevels(std::span<const uint8_t> bytes, const ParquetColumn& column);
  ParquetLevels(ParquetLevels&&) = default;  // no copies: it points into what it holds

  // False: the levels end, or there is no such level.
  bool Next(bool* is_there);

 private:
  const uint32_t highest_;
  std::vector<uint8_t> bytes_;
  ParquetRuns runs_;
};

// Where a page's levels are: bytes [begin, begin + size) behind `page.begin`; its values begin
// behind them. `front` are the first bytes of the page, once it is decompressed.
struct ParquetLevelPlace {
  int64_t begin = 0;
  int64_t size = 0;
};
absl::StatusOr<ParquetLevelPlace> FindParquetLevels(const ParquetPage& page,
                                                    const ParquetColumn& column,
                                                    std::span<const uint8_t> front);

absl::Status DamagedParquetPage(const ParquetPage& page, std::string_view what);

}  // namespace hetero::source
