#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace hetero::base {
namespace {

// x^32 + x^28 + x^27 + ... + 1 with the bits reversed: the highest bit is the coefficient of x^0.
constexpr uint32_t kPolynomial = 0x82F63B78;

// kTables[k][b]: the CRC of byte b followed by k zero bytes, for eight bytes at a time
// (Kounavis and Berry, "Novel table lookup-based algorithms for high-performance CRC", 2008).
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t previous = tables[k - 1][byte];
      tables[k][byte] = (previous >> 8) ^ tables[0][previous & 0xFF];
    }
  }
  return tables;
}();

uint64_t LoadLittleEndian(const unsigned char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  if constexpr (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) word = __builtin_bswap64(word);
  return word;
}

uint32_t ExtendByTable(uint32_t crc, const unsigned char* bytes, size_t size) {
  for (; size >= 8; bytes += 8, size -= 8) {
    const uint64_t word = LoadLittleEndian(bytes) ^ crc;
    crc = 0;
    for (int k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xFF];
  }
  for (; size > 0; ++bytes, --size) crc = (crc >> 8) ^ kTables[0][(crc ^ *bytes) & 0xFF];
  return crc;
}

// a x b modulo the polynomial.
constexpr uint32_t MultiplyModulo(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 0x80000000; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b >> 1) ^ (b & 1 ? kPolynomial : 0);
  }
  return product;
}

#if defined(__x86_64__)
// The instruction takes three cycles and a core can begin one in each: three lanes at a time, put
// together with the CRC's linearity (Gopal et al., "Fast CRC computation for iSCSI polynomial using
// CRC32 instruction", 2011).
constexpr size_t kLaneBytes = 2048;

// kLaneShift[k][b]: byte b at position k of a CRC, followed by kLaneBytes zero bytes.
constexpr auto kLaneShift = [] {
  uint32_t power = 0x80000000 >> 8;  // x^8
  for (size_t bytes = 1; bytes < kLaneBytes; bytes *= 2) power = MultiplyModulo(power, power);
  std::array<std::array<uint32_t, 256>, 4> tables{};
  for (uint32_t k = 0; k < 4; ++k) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      tables[k][byte] = MultiplyModulo(power, byte << (8 * k));
    }
  }
  return tables;
}();

uint64_t ShiftByLane(uint64_t crc) {
  return kLaneShift[0][crc & 0xFF] ^ kLaneShift[1][(crc >> 8) & 0xFF] ^
         kLaneShift[2][(crc >> 16) & 0xFF] ^ kLaneShift[3][(crc >> 24) & 0xFF];
}

__attribute__((target("sse4.2"))) uint32_t ExtendBySse42(uint32_t crc, const unsigned char* bytes,
                                                         size_t size) {
  uint64_t wide = crc;
  for (; size >= 3 * kLaneBytes; bytes += 3 * kLaneBytes, size -= 3 * kLaneBytes) {
    uint64_t second = 0, third = 0;
    for (const unsigned char *at = bytes, *end = bytes + kLaneBytes; at < end; at += 8) {
      wide = _mm_crc32_u64(wide, LoadLittleEndian(at));
      second = _mm_crc32_u64(second, LoadLittleEndian(at + kLaneBytes));
      third = _mm_crc32_u64(third, LoadLittleEndian(at + 2 * kLaneBytes));
    }
    wide = ShiftByLane(ShiftByLane(wide) ^ second) ^ third;
  }
  for (; size >= 8; bytes += 8, size -= 8) wide = _mm_crc32_u64(wide, LoadLittleEndian(bytes));
  crc = static_cast<uint32_t>(wide);
  for (; size > 0; ++bytes, --size) crc = _mm_crc32_u8(crc, *bytes);
  return crc;
}
#endif

using ExtendFunction = uint32_t (*)(uint32_t, const unsigned char*, size_t);

ExtendFunction FastestExtend() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ExtendBySse42;
#endif
  return ExtendByTable;
}

// kPowers[k]: x^(8 * 2^k) modulo the polynomial, that is, 2^k zero bytes.
constexpr auto kPowers = [] {
  std::array<uint32_t, 64> powers{};
  powers[0] = 0x80000000 >> 8;
  for (size_t k = 1; k < powers.size(); ++k) {
    powers[k] = MultiplyModulo(powers[k - 1], powers[k - 1]);
  }
  return powers;
}();

}  // namespace

uint32_t Crc32c(const void* bytes, size_t size, uint32_t crc) {
  static const ExtendFunction extend = FastestExtend();
  return ~extend(~crc, static_cast<const unsigned char*>(bytes), size);
}

uint32_t Crc32cPortable(const void* bytes, size_t size, uint32_t crc) {
  return ~ExtendByTable(~crc, static_cast<const unsigned char*>(bytes), size);
}

uint32_t Crc32cCombine(uint32_t crc_a, uint32_t crc_b, uint64_t size_b) {
  for (int k = 0; size_b != 0; ++k, size_b >>= 1) {
    if (size_b & 1) crc_a = MultiplyModulo(kPowers[k], crc_a);
  }
  return crc_a ^ crc_b;
}

}  // namespace hetero::base
