#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hetero::local {

struct PackedShard {
  std::string name;
  int64_t bytes = 0;
  int64_t samples = 0;
  uint32_t crc = 0;     // CRC32C of all its bytes
  std::string version;  // of the object
};

// What kPackRecord holds. Internal to pack.
struct PackRecord {
  std::string source;  // what decides the shards' bytes: the dataset's fingerprint, and options
  std::vector<PackedShard> shards;
};

std::string ToJson(const PackRecord& record);
// kDataLoss: it is none.
absl::StatusOr<PackRecord> ReadPackRecord(std::string_view text);

}  // namespace hetero::local
