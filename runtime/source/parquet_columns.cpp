#include "runtime/source/parquet_columns.h"

#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/source/decompress.h"
#include "runtime/source/little_endian.h"
#include "runtime/source/parquet_page.h"

namespace hetero::source {
namespace {

constexpr int64_t kMaxPageBytes = int64_t{16} << 20;  // of levels and labels, which are held
constexpr int64_t kSnappy = 1;
constexpr int64_t kZstd = 6;

using PageBytes = std::span<const uint8_t>;

absl::Status NotInPlace(const std::string& found) {
  return absl::InvalidArgumentError(absl::StrCat(
      "is ", found,
      ", and pictures are read where they lie, PLAIN and uncompressed; write the file again: "
      "datasets' to_parquet() with a column of the feature Image, or pyarrow's "
      "write_table(read_table(FILE), NEW, compression=\"none\", use_dictionary=False)"));
}

absl::Status NotRead(const std::string& found) {
  return absl::InvalidArgumentError(
      absl::StrCat("is ", found,
                   ", and labels are read as PLAIN or RLE_DICTIONARY, uncompressed or with SNAPPY "
                   "or ZSTD; write the file again: pyarrow's write_table(read_table(FILE), NEW, "
                   "compression=\"none\", use_dictionary=False)"));
}

absl::Status TooLarge(const ParquetPage& page, int64_t bytes) {
  return absl::InvalidArgumentError(
      absl::StrCat("has ", bytes, " bytes of levels or labels in the page at byte ", page.begin,
                   "; ", kMaxPageBytes, " at most are read, write smaller pages"));
}

absl::StatusOr<ParquetLevels> ReadLevels(BlockReader& file, const ParquetColumn& column,
                                         const ParquetPage& page, int64_t* values) {
  PageBytes front;
  if (page.bytes >= 4) {
    HETERO_ASSIGN_OR_RETURN(front, file.At(page.begin, 4, "the length of a page's levels"));
  }
  HETERO_ASSIGN_OR_RETURN(const ParquetLevelPlace place, FindParquetLevels(page, column, front));
  if (place.size > page.bytes - place.begin) {
    return DamagedParquetPage(page, "its levels go beyond it");
  }
  if (place.size > kMaxPageBytes) return TooLarge(page, place.size);
  *values = page.begin + place.begin + place.size;
  HETERO_ASSIGN_OR_RETURN(
      const PageBytes levels,
      file.At(page.begin + place.begin, static_cast<size_t>(place.size), "a page's levels"));
  return ParquetLevels(levels, column);
}

absl::Status FindInPage(BlockReader& file, const ParquetColumn& column, const ParquetPage& page,
                        std::vector<SampleLocation>* pictures) {
  int64_t at = 0;
  HETERO_ASSIGN_OR_RETURN(ParquetLevels levels, ReadLevels(file, column, page, &at));
  const int64_t end = page.begin + page.bytes;
  for (int64_t i = 0; i < page.values; ++i) {
    bool is_there = false;
    if (!levels.Next(&is_there)) return DamagedParquetPage(page, "its levels end too early");
    SampleLocation location;
    location.offset = kNullPicture;
    if (is_there) {
      if (end - at < 4) return DamagedParquetPage(page, "its pictures end too early");
      HETERO_ASSIGN_OR_RETURN(const PageBytes length, file.At(at, 4, "a picture's length"));
      location.length = WordAt(length, 0);
      location.offset = at + 4;
      if (location.length > end - location.offset) {
        return DamagedParquetPage(page, "a picture goes beyond it");
      }
      at = location.offset + location.length;
    }
    pictures->push_back(location);
  }
  return absl::OkStatus();
}

size_t BytesOf(ParquetType type) {
  return type == ParquetType::kInt32 || type == ParquetType::kFloat ? 4 : 8;
}

ParquetNumber NumberAt(PageBytes bytes, size_t at, const ParquetColumn& column) {
  ParquetNumber number;
  float single = 0;
  switch (column.type) {
    case ParquetType::kInt32:
      number.whole = column.unsigned_word ? int64_t{WordAt(bytes, at)}
                                          : int64_t{static_cast<int32_t>(WordAt(bytes, at))};
      break;
    case ParquetType::kInt64:
      number.whole = static_cast<int64_t>(LongAt(bytes, at));
      break;
    case ParquetType::kFloat:
      std::memcpy(&single, bytes.data() + at, sizeof single);
      number.real = static_cast<double>(single);
      break;
    case ParquetType::kDouble:
      std::memcpy(&number.real, bytes.data() + at, sizeof number.real);
      break;
    case ParquetType::kBoolean:
    case ParquetType::kInt96:
    case ParquetType::kByteArray:
    case ParquetType::kFixedLengthByteArray:
      break;
  }
  return number;
}

// Reads one row group's part of a column of numbers.
class NumberReader {
 public:
  NumberReader(BlockReader& file, const ParquetColumn& column, const ParquetChunk& chunk,
               absl::FunctionRef<void(const ParquetNumber&)> visit)
      : file_(file), column_(column), codec_(chunk.codec), visit_(visit) {}

  absl::Status ReadPage(const ParquetPage& page) {
    if (page.kind == ParquetPage::Kind::kIndex) return absl::OkStatus();
    if (page.bytes > kMaxPageBytes) return TooLarge(page, page.bytes);
    if (page.uncompressed > kMaxPageBytes) return TooLarge(page, page.uncompressed);
    HETERO_ASSIGN_OR_RETURN(const PageBytes raw,
                            file_.At(page.begin, static_cast<size_t>(page.bytes), "a page"));
    if (page.kind == ParquetPage::Kind::kDictionary) return ReadDictionary(page, raw);
    if (page.kind == ParquetPage::Kind::kData) {
      HETERO_ASSIGN_OR_RETURN(const PageBytes bytes, Whole(page, raw, page.uncompressed));
      HETERO_ASSIGN_OR_RETURN(const ParquetLevelPlace place,
                              FindParquetLevels(page, column_, bytes));
      const auto end = static_cast<uint64_t>(place.begin + place.size);
      if (end > bytes.size()) return DamagedParquetPage(page, "its levels go beyond it");
      ParquetLevels levels(
          bytes.subspan(static_cast<size_t>(place.begin), static_cast<size_t>(place.size)),
          column_);
      return ReadValues(page, &levels, bytes.subspan(end));
    }
    HETERO_ASSIGN_OR_RETURN(const ParquetLevelPlace place, FindParquetLevels(page, column_, raw));
    ParquetLevels levels(
        raw.subspan(static_cast<size_t>(place.begin), static_cast<size_t>(place.size)), column_);
    const int64_t end = place.begin + place.size;
    if (page.uncompressed < end) return DamagedParquetPage(page, "its levels go beyond it");
    PageBytes values = raw.subspan(static_cast<size_t>(end));
    if (page.compressed_if_codec) {
      HETERO_ASSIGN_OR_RETURN(values, Whole(page, values, page.uncompressed - end));
    }
    return ReadValues(page, &levels, values);
  }

 private:
  // `bytes` without their compression.
  absl::StatusOr<PageBytes> Whole(const ParquetPage& page, PageBytes bytes, int64_t size) {
    if (codec_ == kParquetUncompressed) return bytes;
    // A page of nulls alone may be compressed to nothing.
    if (bytes.empty() && size == 0) return bytes;
    const auto wanted = static_cast<size_t>(size);
    absl::Status status;
    if (codec_ == kSnappy) {
      status = DecompressSnappy(bytes, wanted, &whole_);
    } else if (codec_ == kZstd) {
      status = DecompressZstd(bytes, wanted, &whole_);
    } else {
      return NotRead(absl::StrCat("compressed (", ParquetCodecName(codec_), ")"));
    }
    if (status.ok()) return PageBytes(whole_);
    return DamagedParquetPage(page, {status.message().data(), status.message().size()});
  }

  absl::Status ReadDictionary(const ParquetPage& page, PageBytes raw) {
    HETERO_ASSIGN_OR_RETURN(const PageBytes bytes, Whole(page, raw, page.uncompressed));
    const size_t size = BytesOf(column_.type);
    if (page.values < 0 || static_cast<uint64_t>(page.values) > bytes.size() / size) {
      return DamagedParquetPage(page, "its dictionary ends too early");
    }
    if (!dictionary_.empty()) return DamagedParquetPage(page, "it is a second dictionary");
    for (size_t i = 0; i < static_cast<size_t>(page.values); ++i) {
      dictionary_.push_back(NumberAt(bytes, i * size, column_));
    }
    return absl::OkStatus();
  }

  absl::Status ReadValues(const ParquetPage& page, ParquetLevels* levels, PageBytes values) {
    const bool indices = page.is_dictionary_encoded();
    if (!indices && page.encoding != kParquetPlain) {
      return NotRead(ParquetEncodingName(page.encoding));
    }
    const size_t size = BytesOf(column_.type);
    int width = 0;
    if (indices && !values.empty()) {
      width = values[0];
      if (width > 32) return DamagedParquetPage(page, "its places in the dictionary");
      values = values.subspan(1);
    }
    ParquetRuns runs(values, width);
    for (int64_t i = 0; i < page.values; ++i) {
      bool is_there = false;
      if (!levels->Next(&is_there)) return DamagedParquetPage(page, "its levels end too early");
      ParquetNumber number;
      number.is_null = !is_there;
      if (is_there && indices) {
        uint32_t place = 0;
        if (!runs.Next(&place) || place >= dictionary_.size()) {
          return DamagedParquetPage(page, "its places in the dictionary");
        }
        number = dictionary_[place];
      } else if (is_there) {
        if (values.size() < size) return DamagedParquetPage(page, "its values end too early");
        number = NumberAt(values, 0, column_);
        values = values.subspan(size);
      }
      visit_(number);
    }
    return absl::OkStatus();
  }

  BlockReader& file_;
  const ParquetColumn& column_;
  const int64_t codec_;
  const absl::FunctionRef<void(const ParquetNumber&)> visit_;
  std::vector<uint8_t> whole_;
  std::vector<ParquetNumber> dictionary_;
};

}  // namespace

absl::Status FindParquetPictures(BlockReader& file, const ParquetColumn& column,
                                 const ParquetChunk& chunk, int64_t rows,
                                 std::vector<SampleLocation>* pictures) {
  if (chunk.codec != kParquetUncompressed) {
    return NotInPlace(absl::StrCat("compressed (", ParquetCodecName(chunk.codec), ")"));
  }
  return WalkParquetPages(file, chunk, rows, [&](const ParquetPage& page) -> absl::Status {
    // A dictionary that no page uses does no harm.
    if (!page.is_data()) return absl::OkStatus();
    if (page.is_dictionary_encoded()) return NotInPlace("encoded with a dictionary");
    if (page.encoding != kParquetPlain) return NotInPlace(ParquetEncodingName(page.encoding));
    return FindInPage(file, column, page, pictures);
  });
}

absl::Status ReadParquetNumbers(BlockReader& file, const ParquetColumn& column,
                                const ParquetChunk& chunk, int64_t rows,
                                absl::FunctionRef<void(const ParquetNumber& number)> visit) {
  NumberReader reader(file, column, chunk, visit);
  return WalkParquetPages(file, chunk, rows,
                          [&](const ParquetPage& page) { return reader.ReadPage(page); });
}

}  // namespace hetero::source
