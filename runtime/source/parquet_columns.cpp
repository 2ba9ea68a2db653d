#include "runtime/source/parquet_columns.h"

#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/source/little_endian.h"
#include "runtime/source/parquet_page.h"
#include "runtime/source/parquet_values.h"

namespace hetero::source {
namespace {

constexpr int64_t kMaxPageBytes = int64_t{16} << 20;  // of levels and labels, which are held
// Of pictures that are not read where they lie.
constexpr int64_t kMaxPackedBytes = int64_t{64} << 20;

using PageBytes = std::span<const uint8_t>;

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

// The places in a dictionary that a page's values are.
class DictionaryPlaces {
 public:
  explicit DictionaryPlaces(PageBytes values)
      : width_(values.empty() ? 0 : values[0]),
        runs_(values.empty() ? values : values.subspan(1), width_ > 32 ? 0 : width_) {}

  // False: there is none, or not in a dictionary of so many entries.
  bool Next(size_t entries, size_t* place) {
    uint32_t number = 0;
    if (width_ > 32 || !runs_.Next(&number) || number >= entries) return false;
    *place = number;
    return true;
  }

 private:
  const int width_;
  ParquetRuns runs_;
};

absl::Status CheckEncoding(const ParquetPage& page) {
  if (page.is_dictionary_encoded() || page.encoding == kParquetPlain) return absl::OkStatus();
  return ParquetNotRead(ParquetEncodingName(page.encoding));
}

// Reads one row group's part of a column of numbers.
class NumberReader {
 public:
  NumberReader(BlockReader& file, const ParquetColumn& column, const ParquetChunk& chunk,
               absl::FunctionRef<void(const ParquetNumber&)> visit)
      : column_(column), reader_(file, column, chunk.codec, kMaxPageBytes), visit_(visit) {}

  absl::Status ReadPage(const ParquetPage& page) {
    if (page.kind == ParquetPage::Kind::kIndex) return absl::OkStatus();
    if (page.kind == ParquetPage::Kind::kDictionary) return ReadDictionary(page);
    HETERO_RETURN_IF_ERROR(CheckEncoding(page));
    HETERO_ASSIGN_OR_RETURN(ParquetPageReader::Values values, reader_.Data(page));
    return ReadValues(page, &values.levels, values.bytes);
  }

 private:
  absl::Status ReadDictionary(const ParquetPage& page) {
    HETERO_ASSIGN_OR_RETURN(const ParquetPageReader::Values values, reader_.Dictionary(page));
    const size_t size = BytesOf(column_.type);
    if (page.values < 0 || static_cast<uint64_t>(page.values) > values.bytes.size() / size) {
      return DamagedParquetPage(page, "its dictionary ends too early");
    }
    if (!dictionary_.empty()) return DamagedParquetPage(page, "it is a second dictionary");
    for (size_t i = 0; i < static_cast<size_t>(page.values); ++i) {
      dictionary_.push_back(NumberAt(values.bytes, i * size, column_));
    }
    return absl::OkStatus();
  }

  absl::Status ReadValues(const ParquetPage& page, ParquetLevels* levels, PageBytes values) {
    const size_t size = BytesOf(column_.type);
    DictionaryPlaces places(page.is_dictionary_encoded() ? values : PageBytes());
    for (int64_t i = 0; i < page.values; ++i) {
      bool is_there = false;
      if (!levels->Next(&is_there)) return DamagedParquetPage(page, "its levels end too early");
      ParquetNumber number;
      number.is_null = !is_there;
      if (is_there && page.is_dictionary_encoded()) {
        size_t place = 0;
        if (!places.Next(dictionary_.size(), &place)) {
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

  const ParquetColumn& column_;
  ParquetPageReader reader_;
  const absl::FunctionRef<void(const ParquetNumber&)> visit_;
  std::vector<ParquetNumber> dictionary_;
};

// Finds the pictures of one row group's part of a column: where they lie, or in the packed pieces
// that hold them.
class PictureFinder {
 public:
  PictureFinder(BlockReader& file, const ParquetColumn& column, const ParquetChunk& chunk,
                PackedPieces* pieces, std::vector<SampleLocation>* pictures)
      : file_(file),
        column_(column),
        codec_(chunk.codec),
        reader_(file, column, chunk.codec, kMaxPackedBytes),
        pieces_(*pieces),
        pictures_(*pictures) {}

  absl::Status ReadPage(const ParquetPage& page) {
    if (page.kind == ParquetPage::Kind::kDictionary) {
      if (dictionary_page_) return DamagedParquetPage(page, "it is a second dictionary");
      dictionary_page_ = page;  // one that no page uses does no harm
    }
    if (!page.is_data()) return absl::OkStatus();
    HETERO_RETURN_IF_ERROR(CheckEncoding(page));
    if (page.is_dictionary_encoded()) return FindInDictionary(page);
    const bool packed = page.kind == ParquetPage::Kind::kData || page.compressed_if_codec;
    if (codec_ == kParquetUncompressed || !packed) {
      return FindInPage(file_, column_, page, &pictures_);
    }
    return FindPacked(page);
  }

 private:
  static SampleLocation At(int64_t address, const PageBytes& text, size_t begin) {
    return {.offset = address + static_cast<int64_t>(begin), .length = WordAt(text, begin - 4)};
  }

  // Where the byte arrays of PLAIN values are, one after the other.
  static bool NextText(PageBytes values, size_t* at) {
    if (values.size() - *at < 4) return false;
    const size_t length = WordAt(values, *at);
    *at += 4;
    if (length > values.size() - *at) return false;
    *at += length;
    return true;
  }

  absl::Status FindPacked(const ParquetPage& page) {
    HETERO_ASSIGN_OR_RETURN(ParquetPageReader::Values values, reader_.Data(page));
    const int64_t address = pieces_.Add(values.piece) + values.begin;
    size_t at = 0;
    for (int64_t i = 0; i < page.values; ++i) {
      bool is_there = false;
      if (!values.levels.Next(&is_there)) {
        return DamagedParquetPage(page, "its levels end too early");
      }
      if (!is_there) {
        pictures_.push_back({.offset = kNullPicture});
        continue;
      }
      const size_t begin = at + 4;
      if (!NextText(values.bytes, &at))
        return DamagedParquetPage(page, "its pictures end too early");
      pictures_.push_back(At(address, values.bytes, begin));
    }
    return absl::OkStatus();
  }

  absl::Status ReadDictionary(const ParquetPage& page) {
    if (!dictionary_page_) return DamagedParquetPage(page, "it has no dictionary");
    HETERO_ASSIGN_OR_RETURN(const ParquetPageReader::Values values,
                            reader_.Dictionary(*dictionary_page_));
    const int64_t address = pieces_.Add(values.piece);
    size_t at = 0;
    for (int64_t i = 0; i < dictionary_page_->values; ++i) {
      const size_t begin = at + 4;
      if (!NextText(values.bytes, &at)) {
        return DamagedParquetPage(*dictionary_page_, "its dictionary ends too early");
      }
      dictionary_.push_back(At(address, values.bytes, begin));
    }
    is_read_ = true;
    return absl::OkStatus();
  }

  absl::Status FindInDictionary(const ParquetPage& page) {
    if (!is_read_) HETERO_RETURN_IF_ERROR(ReadDictionary(page));
    HETERO_ASSIGN_OR_RETURN(ParquetPageReader::Values values, reader_.Data(page));
    DictionaryPlaces places(values.bytes);
    for (int64_t i = 0; i < page.values; ++i) {
      bool is_there = false;
      if (!values.levels.Next(&is_there)) {
        return DamagedParquetPage(page, "its levels end too early");
      }
      size_t place = 0;
      if (is_there && !places.Next(dictionary_.size(), &place)) {
        return DamagedParquetPage(page, "its places in the dictionary");
      }
      pictures_.push_back(is_there ? dictionary_[place] : SampleLocation{.offset = kNullPicture});
    }
    return absl::OkStatus();
  }

  BlockReader& file_;
  const ParquetColumn& column_;
  const int64_t codec_;
  ParquetPageReader reader_;
  PackedPieces& pieces_;
  std::vector<SampleLocation>& pictures_;
  std::optional<ParquetPage> dictionary_page_;
  bool is_read_ = false;  // the dictionary
  std::vector<SampleLocation> dictionary_;
};

}  // namespace

absl::Status FindParquetPictures(BlockReader& file, const ParquetColumn& column,
                                 const ParquetChunk& chunk, int64_t rows, PackedPieces* pieces,
                                 std::vector<SampleLocation>* pictures) {
  PictureFinder finder(file, column, chunk, pieces, pictures);
  return WalkParquetPages(file, chunk, rows,
                          [&](const ParquetPage& page) { return finder.ReadPage(page); });
}

absl::Status ReadParquetNumbers(BlockReader& file, const ParquetColumn& column,
                                const ParquetChunk& chunk, int64_t rows,
                                absl::FunctionRef<void(const ParquetNumber& number)> visit) {
  NumberReader reader(file, column, chunk, visit);
  return WalkParquetPages(file, chunk, rows,
                          [&](const ParquetPage& page) { return reader.ReadPage(page); });
}

}  // namespace hetero::source
