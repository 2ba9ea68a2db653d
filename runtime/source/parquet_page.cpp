#include "runtime/source/parquet_page.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/source/little_endian.h"
#include "runtime/source/thrift_compact.h"

namespace hetero::source {
namespace {

// A header has few bytes, but for the least and the highest value that stand in it.
constexpr int64_t kUsualHeader = 512;
constexpr int64_t kMaxHeader = int64_t{1} << 20;
constexpr int64_t kRleLevels = 3;

bool ReadDataHeader(const ThriftValue& header, ParquetPage* page) {
  return header.type == ThriftType::kStruct &&
         WalkThriftStruct(header.bytes, [&](int64_t field, const ThriftValue& value) {
           if (field == 1) page->values = value.number;
           if (field == 2) page->encoding = value.number;
           if (field == 3 && page->kind == ParquetPage::Kind::kData) {
             page->level_encoding = value.number;
           }
           return true;
         });
}

bool ReadDataV2Header(const ThriftValue& header, ParquetPage* page) {
  return header.type == ThriftType::kStruct &&
         WalkThriftStruct(header.bytes, [&](int64_t field, const ThriftValue& value) {
           if (field == 1) page->values = value.number;
           if (field == 4) page->encoding = value.number;
           if (field == 5) page->definition_bytes = value.number;
           if (field == 6) page->repetition_bytes = value.number;
           if (field == 7) page->compressed_if_codec = value.number != 0;
           return true;
         });
}

// What the header at the front of `bytes` says, and its own length; nullopt: it is no whole one.
std::optional<size_t> ParseHeader(std::span<const uint8_t> bytes, ParquetPage* page) {
  int64_t kind = -1;
  // The page's kind stands before what depends on it.
  const std::optional<size_t> length =
      WalkThriftStruct(bytes, [&](int64_t field, const ThriftValue& value) {
        using Kind = ParquetPage::Kind;
        if (field == 1) {
          kind = value.number;
          if (kind < 0 || kind > 3) return false;
          page->kind = static_cast<Kind>(kind);
        }
        if (field == 2) page->uncompressed = value.number;
        if (field == 3) page->bytes = value.number;
        if (field == 5 && page->kind == Kind::kData) return ReadDataHeader(value, page);
        if (field == 7 && page->kind == Kind::kDictionary) return ReadDataHeader(value, page);
        if (field == 8 && page->kind == Kind::kDataV2) return ReadDataV2Header(value, page);
        return true;
      });
  if (kind < 0) return std::nullopt;
  return length;
}

absl::StatusOr<ParquetPage> ReadPage(BlockReader& file, int64_t begin, int64_t end) {
  for (int64_t tried = kUsualHeader;; tried *= 16) {
    const int64_t length = std::min(tried, end - begin);
    HETERO_ASSIGN_OR_RETURN(const std::span<const uint8_t> bytes,
                            file.At(begin, static_cast<size_t>(length), "a page's header"));
    ParquetPage page;
    const std::optional<size_t> header = ParseHeader(bytes, &page);
    if (!header) {
      if (length < end - begin && tried < kMaxHeader) continue;
      page.begin = begin;
      return DamagedParquetPage(page, "its header is none");
    }
    page.begin = begin + static_cast<int64_t>(*header);
    if (page.bytes < 0 || page.bytes > end - page.begin || page.uncompressed < 0) {
      return DamagedParquetPage(page, "it goes beyond its column");
    }
    return page;
  }
}

}  // namespace

absl::Status DamagedParquetPage(const ParquetPage& page, std::string_view what) {
  return absl::DataLossError(absl::StrCat("has a damaged page at byte ", page.begin, " (",
                                          absl::string_view(what.data(), what.size()),
                                          "); copy the file again"));
}

absl::Status WalkParquetPages(BlockReader& file, const ParquetChunk& chunk, int64_t rows,
                              absl::FunctionRef<absl::Status(const ParquetPage& page)> visit) {
  int64_t at = chunk.begin;
  int64_t left = rows;
  while (left > 0) {
    if (at >= chunk.end) {
      return absl::DataLossError(absl::StrCat("has ", rows - left, " values, but its row group ",
                                              rows, "; copy the file again"));
    }
    HETERO_ASSIGN_OR_RETURN(const ParquetPage page, ReadPage(file, at, chunk.end));
    if (page.is_data()) {
      if (page.values < 0 || page.values > left) {
        return DamagedParquetPage(page, "it has more values than there are rows");
      }
      left -= page.values;
    }
    HETERO_RETURN_IF_ERROR(visit(page));
    at = page.begin + page.bytes;
  }
  return absl::OkStatus();
}

bool ParquetRuns::Next(uint32_t* number) {
  while (left_ == 0) {
    if (!NextRun()) return false;
  }
  --left_;
  if (!packed_) {
    *number = value_;
    return true;
  }
  // Writers may leave away what the last pack has too much.
  if (bit_ + static_cast<uint64_t>(width_) > uint64_t{8} * pack_.size()) return false;
  *number = Packed();
  return true;
}

bool ParquetRuns::NextRun() {
  uint64_t header = 0;
  size_t at = 0;
  for (int shift = 0;; shift += 7) {
    if (at == bytes_.size() || shift > 28) return false;
    header |= uint64_t{bytes_[at] & 0x7fu} << shift;
    if (bytes_[at++] < 0x80) break;
  }
  bytes_ = bytes_.subspan(at);
  packed_ = (header & 1) != 0;
  left_ = header >> 1;
  if (packed_) {
    const uint64_t size = left_ * static_cast<uint64_t>(width_);
    left_ *= 8;
    pack_ = bytes_.first(std::min<uint64_t>(size, bytes_.size()));
    bytes_ = bytes_.subspan(pack_.size());
    bit_ = 0;
    return true;
  }
  const size_t size = static_cast<size_t>(width_ + 7) / 8;
  if (size > bytes_.size()) return false;
  value_ = 0;
  for (size_t i = 0; i < size; ++i) value_ |= uint32_t{bytes_[i]} << (8 * i);
  bytes_ = bytes_.subspan(size);
  return true;
}

uint32_t ParquetRuns::Packed() {
  uint32_t number = 0;
  for (int i = 0; i < width_; ++i, ++bit_) {
    number |= uint32_t{pack_[bit_ / 8] >> (bit_ % 8) & 1u} << i;
  }
  return number;
}

ParquetLevels::ParquetLevels(std::span<const uint8_t> bytes, const ParquetColumn& column)
    : highest_(static_cast<uint32_t>(column.definition)),
      bytes_(bytes.begin(), bytes.end()),
      runs_(bytes_, std::bit_width(highest_)) {}

bool ParquetLevels::Next(bool* is_there) {
  *is_there = true;
  if (highest_ == 0) return true;
  uint32_t level = 0;
  if (!runs_.Next(&level) || level > highest_) return false;
  *is_there = level == highest_;
  return true;
}

absl::StatusOr<ParquetLevelPlace> FindParquetLevels(const ParquetPage& page,
                                                    const ParquetColumn& column,
                                                    std::span<const uint8_t> front) {
  ParquetLevelPlace place;
  if (page.kind == ParquetPage::Kind::kDataV2) {
    if (page.repetition_bytes < 0 || page.repetition_bytes > page.bytes ||
        page.definition_bytes < 0 || page.definition_bytes > page.bytes - page.repetition_bytes) {
      return DamagedParquetPage(page, "its levels go beyond it");
    }
    place.begin = page.repetition_bytes;
    place.size = page.definition_bytes;
    return place;
  }
  if (column.definition == 0) return place;
  if (page.level_encoding != kRleLevels) {
    return absl::InvalidArgumentError(
        absl::StrCat("has levels of the encoding ", ParquetEncodingName(page.level_encoding),
                     ", which is not read; write the file with a newer library"));
  }
  if (front.size() < 4) return DamagedParquetPage(page, "it has no levels");
  place.begin = 4;
  place.size = WordAt(front, 0);
  return place;
}

}  // namespace hetero::source
