#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

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

}  // namespace hetero::source
