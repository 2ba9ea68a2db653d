#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace hetero::source {

// Where one sample lies. A dataset keeps one of these for each sample, and nothing else; an index
// has them as they are in memory.
struct SampleLocation {
  int64_t offset = 0;   // in its shard: of the picture, or of the record that holds it
  uint32_t length = 0;  // bytes; the most that fits where there are more
  uint32_t shard = 0;
  // The sample's class, where the scan has found it; with a `label_length`, how many bytes behind
  // `offset` its label lies (before it, where negative).
  int32_t label = 0;
  uint32_t label_length = 0;
};
static_assert(sizeof(SampleLocation) == 24);
static_assert(std::is_trivially_copyable_v<SampleLocation>);
static_assert(std::endian::native == std::endian::little, "an index is little-endian");

// Most bytes of a label that lies apart from its picture.
inline constexpr int64_t kMaxLabelBytes = 16 << 20;

// `length` as a location has it.
uint32_t LengthOfLocation(int64_t length);

}  // namespace hetero::source
