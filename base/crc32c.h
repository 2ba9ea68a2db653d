#pragma once

#include <cstddef>
#include <cstdint>

namespace hetero::base {

// CRC32C (Castagnoli, RFC 3720) of `bytes`, continued from `crc` (0 at the start). Uses SSE4.2
// where the processor has it; the result is the same everywhere.
uint32_t Crc32c(const void* bytes, size_t size, uint32_t crc = 0);

// The same without processor extensions: what Crc32c uses elsewhere, and what it is tested against.
uint32_t Crc32cPortable(const void* bytes, size_t size, uint32_t crc = 0);

// CRC of A followed by B, from crc(A), crc(B) and B's length in bytes.
uint32_t Crc32cCombine(uint32_t crc_a, uint32_t crc_b, uint64_t size_b);

}  // namespace hetero::base
