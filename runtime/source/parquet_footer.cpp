#include "runtime/source/parquet_footer.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/source/little_endian.h"
#include "runtime/source/thrift_compact.h"

namespace hetero::source {
namespace {

constexpr size_t kTail = 8;  // the footer's length and the magic
constexpr int64_t kMaxFooterBytes = int64_t{64} << 20;
constexpr size_t kMaxElements = 65'536;  // of the schema
constexpr size_t kMaxDepth = 32;
constexpr size_t kMaxPathBytes = size_t{16} << 20;  // of all columns together
constexpr int64_t kRepeated = 2;
constexpr int64_t kOptional = 1;
constexpr int64_t kUint32 = 13;  // ConvertedType

absl::Status DamagedFooter(std::string_view what) {
  return absl::DataLossError(absl::StrCat("its footer is damaged (",
                                          absl::string_view(what.data(), what.size()),
                                          "); copy the file again"));
}

std::string_view TextOfThrift(const ThriftValue& value) {
  return {reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()};
}

// An element of the schema, which lists a tree depth first.
struct SchemaElement {
  int64_t type = -1;
  int64_t repetition = 0;
  int64_t children = 0;
  int64_t converted = -1;
  int64_t scale = 0;  // of a DECIMAL
  std::string_view name;
};

bool ReadElement(const ThriftValue& value, SchemaElement* element) {
  if (value.type != ThriftType::kStruct) return false;
  const auto read = [&](int64_t field, const ThriftValue& part) {
    if (field == 1) element->type = part.number;
    if (field == 3) element->repetition = part.number;
    if (field == 4) element->name = TextOfThrift(part);
    if (field == 5) element->children = part.number;
    if (field == 6) element->converted = part.number;
    if (field == 7) element->scale = part.number;
    return true;
  };
  return WalkThriftStruct(value.bytes, read).has_value();
}

// Makes columns of elements as they come.
class SchemaTree {
 public:
  bool Add(const SchemaElement& element) {
    while (!groups_.empty() && groups_.back().children_left == 0) groups_.pop_back();
    if (++elements_ > kMaxElements || groups_.size() > kMaxDepth) return false;
    const bool root = elements_ == 1;
    if (root != groups_.empty() || element.children < 0) return false;
    Group here;
    if (!root) {
      here = groups_.back();
      --groups_.back().children_left;
      if (!here.path.empty()) here.path += '.';
      here.path += element.name;
      here.repeated |= element.repetition == kRepeated;
      here.definition += element.repetition == kOptional || element.repetition == kRepeated;
    }
    path_bytes_ += here.path.size();
    if (path_bytes_ > kMaxPathBytes) return false;
    here.children_left = element.children;
    if (root || element.children > 0) {
      groups_.push_back(std::move(here));
      return true;
    }
    // A group may be empty; it is no column then.
    if (element.type < 0) return true;
    if (element.type > static_cast<int64_t>(ParquetType::kFixedLengthByteArray)) return false;
    columns_.push_back({std::move(here.path), static_cast<ParquetType>(element.type), here.repeated,
                        here.definition, element.converted == kUint32, element.scale != 0});
    return true;
  }

  bool complete() const {
    for (const Group& group : groups_) {
      if (group.children_left != 0) return false;
    }
    return !groups_.empty();
  }
  std::vector<ParquetColumn> TakeColumns() { return std::move(columns_); }

 private:
  struct Group {
    std::string path;
    bool repeated = false;
    int definition = 0;
    int64_t children_left = 0;
  };
  std::vector<Group> groups_;  // from the root to where the next element stands
  std::vector<ParquetColumn> columns_;
  size_t elements_ = 0;
  size_t path_bytes_ = 0;
};

ThriftValue ListIn(std::span<const uint8_t> bytes) {
  ThriftValue list;
  list.type = ThriftType::kList;
  list.bytes = bytes;
  return list;
}

// Of ColumnMetaData.
struct ChunkParts {
  std::string path;
  std::optional<int64_t> codec;
  std::optional<int64_t> bytes;
  std::optional<int64_t> data;
  std::optional<int64_t> dictionary;
};

bool ReadChunkParts(const ThriftValue& value, ChunkParts* parts) {
  if (value.type != ThriftType::kStruct) return false;
  const auto add_name = [&](const ThriftValue& name) {
    if (parts->path.size() + name.bytes.size() > kMaxPathBytes) return false;
    if (!parts->path.empty()) parts->path += '.';
    parts->path += TextOfThrift(name);
    return true;
  };
  const auto read = [&](int64_t field, const ThriftValue& part) {
    if (field == 3) return WalkThriftList(part, add_name);
    if (!part.is_integer()) return true;
    if (field == 4) parts->codec = part.number;
    if (field == 7) parts->bytes = part.number;
    if (field == 9) parts->data = part.number;
    if (field == 11) parts->dictionary = part.number;
    return true;
  };
  return WalkThriftStruct(value.bytes, read).has_value();
}

template <size_t N>
std::string NameIn(const char* const (&names)[N], int64_t number, const char* kind) {
  if (number >= 0 && number < static_cast<int64_t>(N) && *names[number] != 0) return names[number];
  return absl::StrCat(kind, " ", number);
}

}  // namespace

std::string NameOf(ParquetType type) {
  static constexpr const char* kNames[] = {
      "BOOLEAN", "INT32",  "INT64",      "INT96",
      "FLOAT",   "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"};
  return NameIn(kNames, static_cast<int64_t>(type), "type");
}

std::string ParquetCodecName(int64_t codec) {
  static constexpr const char* kNames[] = {"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO",
                                           "BROTLI",       "LZ4",    "ZSTD", "LZ4_RAW"};
  return NameIn(kNames, codec, "codec");
}

std::string ParquetEncodingName(int64_t encoding) {
  static constexpr const char* kNames[] = {"PLAIN",
                                           "",
                                           "PLAIN_DICTIONARY",
                                           "RLE",
                                           "BIT_PACKED",
                                           "DELTA_BINARY_PACKED",
                                           "DELTA_LENGTH_BYTE_ARRAY",
                                           "DELTA_BYTE_ARRAY",
                                           "RLE_DICTIONARY",
                                           "BYTE_STREAM_SPLIT"};
  return NameIn(kNames, encoding, "encoding");
}

absl::StatusOr<ParquetFooter> ParquetFooter::Read(BlockReader& file) {
  constexpr int64_t kLeast = 4 + kTail;
  if (file.size() < kLeast) {
    return absl::DataLossError(absl::StrCat(file.size(), " bytes are no Parquet file, which has ",
                                            kLeast, " at least; copy it again"));
  }
  HETERO_ASSIGN_OR_RETURN(const std::span<const uint8_t> tail,
                          file.At(file.size() - int64_t{kTail}, kTail, "the footer's length"));
  const std::string_view magic(reinterpret_cast<const char*>(tail.data()) + 4, 4);
  if (magic == "PARE") {
    return absl::InvalidArgumentError(
        "its footer is encrypted (PARE); decrypt the dataset and write it again");
  }
  const int64_t length = WordAt(tail, 0);
  if (magic != kParquetMagic) {
    return absl::DataLossError(
        "does not end as a Parquet file (PAR1); it is none, or cut short: copy it again");
  }
  if (length > kMaxFooterBytes) {
    return absl::InvalidArgumentError(absl::StrCat("has a footer of ", length, " bytes; ",
                                                   kMaxFooterBytes,
                                                   " at most are read, write smaller files"));
  }
  ParquetFooter footer;
  footer.begin_ = file.size() - int64_t{kTail} - length;
  if (footer.begin_ < 4) return DamagedFooter("it is larger than the file");
  HETERO_ASSIGN_OR_RETURN(const std::span<const uint8_t> bytes,
                          file.At(footer.begin_, static_cast<size_t>(length), "the footer"));
  footer.bytes_.assign(bytes.begin(), bytes.end());
  HETERO_RETURN_IF_ERROR(footer.Parse());
  return footer;
}

absl::Status ParquetFooter::Parse() {
  SchemaTree tree;
  bool encrypted = false;
  const auto add = [&](const ThriftValue& value) {
    SchemaElement element;
    return ReadElement(value, &element) && tree.Add(element);
  };
  const auto read = [&](int64_t field, const ThriftValue& value) {
    if (field == 2) return WalkThriftList(value, add);
    if (field == 4 && value.type == ThriftType::kList) row_groups_ = value.bytes;
    if (field == 5 && value.type == ThriftType::kList) metadata_ = value.bytes;
    if (field == 8) encrypted = true;
    return true;
  };
  if (!WalkThriftStruct(bytes_, read) || !tree.complete()) return DamagedFooter("its schema");
  if (encrypted) {
    return absl::InvalidArgumentError("is encrypted; decrypt the dataset and write it again");
  }
  columns_ = tree.TakeColumns();
  return absl::OkStatus();
}

std::string_view ParquetFooter::Metadata(std::string_view key) const {
  std::string_view found;
  WalkThriftList(ListIn(metadata_), [&](const ThriftValue& entry) {
    std::string_view name;
    std::string_view text;
    const auto read = [&](int64_t field, const ThriftValue& part) {
      if (field == 1) name = TextOfThrift(part);
      if (field == 2) text = TextOfThrift(part);
      return true;
    };
    if (entry.type != ThriftType::kStruct || !WalkThriftStruct(entry.bytes, read)) return false;
    if (name == key) found = text;
    return true;
  });
  return found;
}

absl::StatusOr<ParquetChunk> ParquetFooter::ReadChunk(std::span<const uint8_t> chunk,
                                                      const ParquetColumn& column) const {
  ChunkParts parts;
  bool elsewhere = false;
  bool encrypted = false;
  const auto read = [&](int64_t field, const ThriftValue& value) {
    if (field == 1) elsewhere = true;
    if (field == 3) return ReadChunkParts(value, &parts);
    if (field == 8 || field == 9) encrypted = true;
    return true;
  };
  if (!WalkThriftStruct(chunk, read)) return DamagedFooter(absl::StrCat("column ", column.path));
  if (encrypted) {
    return absl::InvalidArgumentError(absl::StrCat(
        "column ", column.path, " is encrypted; decrypt the dataset and write it again"));
  }
  if (elsewhere) {
    return absl::InvalidArgumentError(absl::StrCat(
        "column ", column.path, " lies in another file; write each file with all its columns"));
  }
  if (!parts.codec || !parts.bytes || !parts.data || parts.path != column.path) {
    return DamagedFooter(absl::StrCat("column ", column.path));
  }
  ParquetChunk found;
  found.codec = *parts.codec;
  found.begin = *parts.data;
  if (parts.dictionary && *parts.dictionary > 0 && *parts.dictionary < found.begin) {
    found.begin = *parts.dictionary;
  }
  if (found.begin < 4 || found.begin > begin_ || *parts.bytes < 0 ||
      *parts.bytes > begin_ - found.begin) {
    return DamagedFooter(absl::StrCat("column ", column.path, " lies beyond the file's data"));
  }
  found.end = found.begin + *parts.bytes;
  return found;
}

absl::StatusOr<std::vector<ParquetRowGroup>> ParquetFooter::RowGroups(
    std::span<const size_t> columns) const {
  std::vector<ParquetRowGroup> groups;
  absl::Status status;
  int64_t rows = 0;
  std::vector<int64_t> bytes(columns.size());  // of each column, in all row groups
  const auto read_group = [&](const ThriftValue& value) {
    ParquetRowGroup group;
    group.rows = -1;
    std::vector<std::span<const uint8_t>> chunks(columns.size());
    size_t column = 0;
    const auto keep = [&](const ThriftValue& chunk) {
      for (size_t i = 0; i < columns.size(); ++i) {
        if (columns[i] == column) chunks[i] = chunk.bytes;
      }
      ++column;
      return chunk.type == ThriftType::kStruct;
    };
    const auto read = [&](int64_t field, const ThriftValue& part) {
      if (field == 1) return WalkThriftList(part, keep);
      if (field == 3) group.rows = part.number;
      return true;
    };
    if (value.type != ThriftType::kStruct || !WalkThriftStruct(value.bytes, read) ||
        column != columns_.size() || group.rows < 0) {
      return false;
    }
    // No file has more rows than bytes: each picture's length has four, and what is empty or null
    // all over is no dataset. So a few bytes cannot claim any number of samples.
    if (group.rows > begin_ - rows) return false;
    rows += group.rows;
    for (size_t i = 0; i < columns.size(); ++i) {
      absl::StatusOr<ParquetChunk> chunk = ReadChunk(chunks[i], columns_[columns[i]]);
      if (!chunk.ok()) {
        status = chunk.status();
        return false;
      }
      // Chunks do not overlap, so what is read is bounded by the file.
      bytes[i] += chunk->end - chunk->begin;
      if (bytes[i] > begin_) return false;
      group.chunks.push_back(*chunk);
    }
    groups.push_back(std::move(group));
    return true;
  };
  const bool whole = WalkThriftList(ListIn(row_groups_), read_group);
  HETERO_RETURN_IF_ERROR(status);
  if (!whole) return DamagedFooter(absl::StrCat("row group ", groups.size()));
  return groups;
}

}  // namespace hetero::source
