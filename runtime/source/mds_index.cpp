#include "runtime/source/mds_index.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hetero::source {
namespace {

using nlohmann::json;

constexpr int64_t kMaxColumns = 256;

absl::Status Wrong(std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("has ", absl::string_view(what.data(), what.size())));
}

const json& Member(const json& object, const char* name) {
  static const json kNothing;
  const auto found = object.find(name);
  return found == object.end() ? kNothing : *found;
}

absl::StatusOr<int64_t> CountIn(const json& object, const char* name) {
  const json& value = Member(object, name);
  if (value.is_number_integer() && value >= 0 &&
      value <= std::numeric_limits<uint32_t>::max() * int64_t{1024}) {
    return value.get<int64_t>();
  }
  return Wrong(absl::StrCat("no number of ", name));
}

absl::StatusOr<std::vector<MdsColumn>> ParseColumns(const json& shard) {
  const json& names = Member(shard, "column_names");
  const json& encodings = Member(shard, "column_encodings");
  const json& sizes = Member(shard, "column_sizes");
  if (!names.is_array() || !encodings.is_array() || !sizes.is_array() ||
      names.size() != encodings.size() || names.size() != sizes.size() ||
      names.size() > size_t{kMaxColumns}) {
    return Wrong("no column_names, column_encodings and column_sizes of one length");
  }
  std::vector<MdsColumn> columns;
  for (size_t i = 0; i < names.size(); ++i) {
    const json& size = sizes[i];
    const bool fixed =
        size.is_number_integer() && size >= 0 && size <= std::numeric_limits<int32_t>::max();
    if (!names[i].is_string() || !encodings[i].is_string() || (!fixed && !size.is_null())) {
      return Wrong(absl::StrCat("a column ", i, " without name, encoding or size"));
    }
    columns.push_back({names[i].get<std::string>(), encodings[i].get<std::string>(),
                       fixed ? size.get<int64_t>() : -1});
  }
  return columns;
}

// A value for messages. Lists may be nested deeper than a stack reaches.
std::string TextOf(const json& value) {
  return value.is_structured() ? value.type_name() : value.dump();
}

absl::Status CheckKind(const json& shard) {
  const json& format = Member(shard, "format");
  const json& version = Member(shard, "version");
  if (format != "mds" || version != 2) {
    return Wrong(absl::StrCat("the format ", TextOf(format), " in version ", TextOf(version),
                              "; mds in version 2 is read"));
  }
  return absl::OkStatus();
}

// Whether the shard is compressed, in the way that is read: "zstd", or "zstd:7".
absl::StatusOr<bool> IsPacked(const json& shard) {
  const json& compression = Member(shard, "compression");
  if (compression.is_null() || compression == "") return false;
  if (compression.is_string()) {
    const std::string_view name = compression.get_ref<const std::string&>();
    if (name.substr(0, name.find(':')) == "zstd") return true;
  }
  return Wrong(absl::StrCat("the compression ", TextOf(compression),
                            "; zstd is read. Better write the dataset with compression=None: "
                            "pictures are compressed already"));
}

absl::Status ReadFilePart(const json& object, const char* part, std::string* name, int64_t* bytes) {
  const json& file = Member(object, part);
  if (!file.is_object() || !Member(file, "basename").is_string()) {
    return Wrong(absl::StrCat("no ", part, " with a basename"));
  }
  *name = Member(file, "basename").get<std::string>();
  HETERO_ASSIGN_OR_RETURN(*bytes, CountIn(file, "bytes"));
  return absl::OkStatus();
}

absl::StatusOr<MdsShard> ParseShard(const json& object) {
  HETERO_RETURN_IF_ERROR(CheckKind(object));
  HETERO_ASSIGN_OR_RETURN(const bool packed, IsPacked(object));
  MdsShard shard;
  HETERO_RETURN_IF_ERROR(ReadFilePart(object, "raw_data", &shard.name, &shard.bytes));
  if (packed) {
    shard.unpacked = shard.bytes;
    HETERO_RETURN_IF_ERROR(ReadFilePart(object, "zip_data", &shard.name, &shard.bytes));
    if (shard.unpacked == 0) return Wrong("no bytes in raw_data");
  }
  HETERO_ASSIGN_OR_RETURN(shard.samples, CountIn(object, "samples"));
  return shard;
}

}  // namespace

absl::StatusOr<MdsIndex> ParseMdsIndex(const std::string& where, std::string_view text) {
  const json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const json& shards = root.is_object() ? Member(root, "shards") : root;
  if (!shards.is_array() || shards.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": is no index of an MDS dataset: it has no list of shards"));
  }
  MdsIndex index;
  for (const json& object : shards) {
    const auto failed = [&](const absl::Status& status) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": shard ", index.shards.size(), " ", status.message()));
    };
    if (!object.is_object()) return failed(Wrong("no fields"));
    absl::StatusOr<MdsShard> shard = ParseShard(object);
    if (!shard.ok()) return failed(shard.status());
    absl::StatusOr<std::vector<MdsColumn>> columns = ParseColumns(object);
    if (!columns.ok()) return failed(columns.status());
    if (index.shards.empty()) index.columns = *columns;
    if (*columns != index.columns) return failed(Wrong("other columns than the first one"));
    if (!index.shards.empty() && (index.shards[0].unpacked == 0) != (shard->unpacked == 0)) {
      return failed(Wrong("another compression than the first one"));
    }
    index.shards.push_back(*std::move(shard));
  }
  return index;
}

}  // namespace hetero::source
