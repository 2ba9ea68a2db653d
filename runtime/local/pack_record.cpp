#include "runtime/local/pack_record.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace hetero::local {
namespace {

constexpr int kVersion = 1;

}  // namespace

std::string ToJson(const PackRecord& record) {
  nlohmann::ordered_json shards = nlohmann::ordered_json::array();
  for (const PackedShard& shard : record.shards) {
    shards.push_back({{"name", shard.name},
                      {"bytes", shard.bytes},
                      {"samples", shard.samples},
                      {"crc32c", shard.crc},
                      {"version", shard.version}});
  }
  const nlohmann::ordered_json json = {
      {"packRecord", kVersion}, {"source", record.source}, {"shards", std::move(shards)}};
  return json.dump(1) + "\n";
}

absl::StatusOr<PackRecord> ReadPackRecord(std::string_view text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    if (json.at("packRecord") != kVersion) {
      return absl::DataLossError("is of another version of this program");
    }
    PackRecord record;
    json.at("source").get_to(record.source);
    for (const nlohmann::json& shard : json.at("shards")) {
      record.shards.push_back({.name = shard.at("name"),
                               .bytes = shard.at("bytes"),
                               .samples = shard.at("samples"),
                               .crc = shard.at("crc32c"),
                               .version = shard.at("version")});
    }
    return record;
  } catch (const nlohmann::json::exception&) {
    return absl::DataLossError("is no record of a packing");
  }
}

}  // namespace hetero::local
