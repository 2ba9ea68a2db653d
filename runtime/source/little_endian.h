#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// Numbers in files, whose bytes begin with the lowest.
namespace hetero::source {

// 32 bits at `at`, which are there.
inline uint32_t WordAt(std::span<const uint8_t> bytes, size_t at) {
  return uint32_t{bytes[at]} | uint32_t{bytes[at + 1]} << 8 | uint32_t{bytes[at + 2]} << 16 |
         uint32_t{bytes[at + 3]} << 24;
}

// 64 bits.
inline uint64_t LongAt(std::span<const uint8_t> bytes, size_t at) {
  return uint64_t{WordAt(bytes, at)} | uint64_t{WordAt(bytes, at + 4)} << 32;
}

inline void AppendWord(uint32_t word, std::vector<uint8_t>* bytes) {
  for (int shift = 0; shift < 32; shift += 8) {
    bytes->push_back(static_cast<uint8_t>(word >> shift));
  }
}

}  // namespace hetero::source
