#include "runtime/source/parquet_values.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hetero::source {
namespace {

constexpr int64_t kSnappy = 1;
constexpr int64_t kGzip = 2;
constexpr int64_t kZstd = 6;

absl::StatusOr<Compression> CompressionOf(int64_t codec) {
  switch (codec) {
    case kParquetUncompressed:
      return Compression::kNone;
    case kSnappy:
      return Compression::kSnappy;
    case kGzip:
      return Compression::kGzip;
    case kZstd:
      return Compression::kZstd;
    default:
      return ParquetNotRead(absl::StrCat("compressed (", ParquetCodecName(codec), ")"));
  }
}

}  // namespace

absl::Status ParquetNotRead(const std::string& found) {
  return absl::InvalidArgumentError(absl::StrCat(
      "is ", found,
      ", and columns are read as PLAIN or RLE_DICTIONARY, uncompressed or with SNAPPY, "
      "ZSTD or GZIP; write the file again: pyarrow's write_table(read_table(FILE), NEW, "
      "compression=\"none\", use_dictionary=False)"));
}

ParquetPageReader::ParquetPageReader(BlockReader& file, const ParquetColumn& column, int64_t codec,
                                     int64_t most_bytes)
    : file_(file), column_(column), codec_(codec), most_bytes_(most_bytes) {}

absl::StatusOr<std::span<const uint8_t>> ParquetPageReader::Raw(const ParquetPage& page) {
  for (const int64_t bytes : {page.bytes, page.uncompressed}) {
    if (bytes <= most_bytes_) continue;
    return absl::InvalidArgumentError(absl::StrCat("has a page of ", bytes, " bytes at byte ",
                                                   page.begin, "; ", most_bytes_,
                                                   " at most are read, write smaller pages"));
  }
  return file_.At(page.begin, static_cast<size_t>(page.bytes), "a page");
}

absl::StatusOr<std::span<const uint8_t>> ParquetPageReader::Unpack(const ParquetPage& page,
                                                                   std::span<const uint8_t> bytes,
                                                                   bool packed,
                                                                   PackedPiece* piece) {
  if (!packed || codec_ == kParquetUncompressed) {
    piece->unpacked = piece->bytes;
    return bytes;
  }
  // A page of nulls alone may be compressed to nothing.
  if (bytes.empty() && piece->unpacked == 0) return bytes;
  HETERO_ASSIGN_OR_RETURN(piece->compression, CompressionOf(codec_));
  const absl::Status status =
      Decompress(piece->compression, bytes, static_cast<size_t>(piece->unpacked), &unpacked_);
  if (status.ok()) return std::span<const uint8_t>(unpacked_);
  return DamagedParquetPage(page, {status.message().data(), status.message().size()});
}

absl::StatusOr<ParquetPageReader::Values> ParquetPageReader::Data(const ParquetPage& page) {
  HETERO_ASSIGN_OR_RETURN(const std::span<const uint8_t> raw, Raw(page));
  PackedPiece piece{.begin = page.begin, .bytes = page.bytes, .unpacked = page.uncompressed};
  if (page.kind == ParquetPage::Kind::kData) {
    HETERO_ASSIGN_OR_RETURN(const std::span<const uint8_t> bytes,
                            Unpack(page, raw, /*packed=*/true, &piece));
    HETERO_ASSIGN_OR_RETURN(const ParquetLevelPlace place, FindParquetLevels(page, column_, bytes));
    const auto end = static_cast<uint64_t>(place.begin + place.size);
    if (end > bytes.size()) return DamagedParquetPage(page, "its levels go beyond it");
    ParquetLevels levels(
        bytes.subspan(static_cast<size_t>(place.begin), static_cast<size_t>(place.size)), column_);
    return Values{std::move(levels), bytes.subspan(end), piece, static_cast<int64_t>(end)};
  }
  HETERO_ASSIGN_OR_RETURN(const ParquetLevelPlace place, FindParquetLevels(page, column_, raw));
  ParquetLevels levels(
      raw.subspan(static_cast<size_t>(place.begin), static_cast<size_t>(place.size)), column_);
  const int64_t end = place.begin + place.size;
  if (page.uncompressed < end) return DamagedParquetPage(page, "its levels go beyond it");
  piece = {
      .begin = page.begin + end, .bytes = page.bytes - end, .unpacked = page.uncompressed - end};
  HETERO_ASSIGN_OR_RETURN(
      const std::span<const uint8_t> bytes,
      Unpack(page, raw.subspan(static_cast<size_t>(end)), page.compressed_if_codec, &piece));
  return Values{std::move(levels), bytes, piece, 0};
}

absl::StatusOr<ParquetPageReader::Values> ParquetPageReader::Dictionary(const ParquetPage& page) {
  HETERO_ASSIGN_OR_RETURN(const std::span<const uint8_t> raw, Raw(page));
  PackedPiece piece{.begin = page.begin, .bytes = page.bytes, .unpacked = page.uncompressed};
  HETERO_ASSIGN_OR_RETURN(const std::span<const uint8_t> bytes,
                          Unpack(page, raw, /*packed=*/true, &piece));
  return Values{ParquetLevels({}, column_), bytes, piece, 0};
}

}  // namespace hetero::source
