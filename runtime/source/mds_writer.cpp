#include "runtime/source/mds_writer.h"

#include <cassert>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/source/little_endian.h"

namespace hetero::source {
namespace {

std::string Quoted(const std::string& name) { return absl::StrCat("\"", name, "\""); }

// The list `field` of what each column has.
template <typename Value>
std::string List(const char* field, std::span<const MdsColumn> columns, Value value) {
  return absl::StrCat("\"", field, "\": [",
                      absl::StrJoin(columns, ", ",
                                    [&value](std::string* text, const MdsColumn& column) {
                                      absl::StrAppend(text, value(column));
                                    }),
                      "]");
}

// JSON as Python writes it, with the names in order: of what all shards have in common there is a
// part before and a part behind what each has of its own.
std::string Before(std::span<const MdsColumn> columns) {
  return absl::StrCat(
      List("column_encodings", columns, [](const auto& column) { return Quoted(column.encoding); }),
      ", ", List("column_names", columns, [](const auto& column) { return Quoted(column.name); }),
      ", ",
      List("column_sizes", columns,
           [](const MdsColumn& column) {
             return column.size < 0 ? "null" : absl::StrCat(column.size);
           }),
      ", \"compression\": null, \"format\": \"mds\", \"hashes\": [], ");
}

std::string Behind(int64_t most_bytes) {
  return absl::StrCat("\"size_limit\": ", most_bytes, ", \"version\": 2");
}

}  // namespace

std::string MdsConfig(std::span<const MdsColumn> columns, int64_t most_bytes) {
  return absl::StrCat("{", Before(columns), Behind(most_bytes), "}");
}

std::vector<uint8_t> MdsTable(std::span<const uint32_t> lengths, size_t config) {
  std::vector<uint8_t> table;
  AppendWord(static_cast<uint32_t>(lengths.size()), &table);
  int64_t at = kMdsTable + kMdsTableSample * static_cast<int64_t>(lengths.size()) +
               static_cast<int64_t>(config);
  AppendWord(static_cast<uint32_t>(at), &table);
  for (const uint32_t length : lengths) {
    at += length;
    AppendWord(static_cast<uint32_t>(at), &table);
  }
  assert(at <= kMostMdsBytes);
  return table;
}

std::string MdsIndexText(std::span<const MdsColumn> columns, int64_t most_bytes,
                         std::span<const MdsShard> shards) {
  const std::string before = Before(columns);
  const std::string behind = Behind(most_bytes);
  const std::string list =
      absl::StrJoin(shards, ", ", [&](std::string* text, const MdsShard& shard) {
        absl::StrAppend(text, "{", before, "\"raw_data\": {\"basename\": ", Quoted(shard.name),
                        ", \"bytes\": ", shard.bytes,
                        ", \"hashes\": {}}, \"samples\": ", shard.samples, ", ", behind,
                        ", \"zip_data\": null}");
      });
  return absl::StrCat("{\"shards\": [", list, "], \"version\": 2}");
}

}  // namespace hetero::source
