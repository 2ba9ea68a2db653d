#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// index.json of the MDS format. Internal to mds.
namespace hetero::source {

struct MdsColumn {
  std::string name;
  std::string encoding;  // "jpeg", "int", "ndarray:float32:2,2"
  int64_t size = 0;      // bytes; -1: another one in each sample
  bool operator==(const MdsColumn&) const = default;
};

struct MdsShard {
  std::string name;  // of the file that there is, relative to the index
  int64_t bytes = 0;
  int64_t unpacked = 0;  // bytes of a shard that is compressed, once it is not; 0: it is not
  int64_t samples = 0;
};

struct MdsIndex {
  std::vector<MdsColumn> columns;  // of all shards
  std::vector<MdsShard> shards;
};

// kInvalidArgument with `where` and the shard's number: what is not in the format, or not read.
absl::StatusOr<MdsIndex> ParseMdsIndex(const std::string& where, std::string_view text);

}  // namespace hetero::source
