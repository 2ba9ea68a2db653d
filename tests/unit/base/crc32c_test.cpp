#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace hetero::base {
namespace {

// One bit at a time, straight from the definition.
uint32_t Naive(const std::vector<unsigned char>& bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (unsigned char byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? (crc >> 1) ^ 0x82F63B78 : crc >> 1;
  }
  return ~crc;
}

std::vector<unsigned char> RandomBytes(size_t size, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<unsigned char> bytes(size);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(generator());
  return bytes;
}

// RFC 3720, appendix B.4, and the check value of the catalogue of CRC algorithms.
TEST(Crc32cTest, PublishedValues) {
  EXPECT_EQ(Crc32c("123456789", 9), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0').data(), 32), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xFF').data(), 32), 0x62A8AB43u);
  std::string rising;
  for (int i = 0; i < 32; ++i) rising.push_back(static_cast<char>(i));
  EXPECT_EQ(Crc32c(rising.data(), 32), 0x46DD794Eu);
  EXPECT_EQ(Crc32c(nullptr, 0), 0u);
}

TEST(Crc32cTest, BothImplementationsEqualTheDefinitionAtEveryLengthAndOffset) {
  for (size_t size = 0; size < 70; ++size) {
    const auto bytes = RandomBytes(size + 8, static_cast<unsigned>(size));
    for (size_t offset = 0; offset < 8; ++offset) {
      const uint32_t want = Naive({bytes.begin() + offset, bytes.begin() + offset + size});
      ASSERT_EQ(Crc32c(bytes.data() + offset, size), want);
      ASSERT_EQ(Crc32cPortable(bytes.data() + offset, size), want);
    }
  }
  // Around the lanes of the fast implementation.
  for (const size_t size : {6143, 6144, 6145, 6151, 12'288, 12'300, 20'000}) {
    const auto bytes = RandomBytes(size, 2);
    ASSERT_EQ(Crc32c(bytes.data(), size, 77), Crc32cPortable(bytes.data(), size, 77)) << size;
  }
  const auto large = RandomBytes(100'003, 1);
  EXPECT_EQ(Crc32c(large.data(), large.size()), Naive(large));
  EXPECT_EQ(Crc32cPortable(large.data(), large.size()), Naive(large));
}

TEST(Crc32cTest, ContinuesAndCombines) {
  const auto bytes = RandomBytes(5000, 3);
  const uint32_t whole = Crc32c(bytes.data(), bytes.size());
  for (size_t cut : {0, 1, 7, 8, 9, 100, 2500, 4096, 4999, 5000}) {
    const uint32_t head = Crc32c(bytes.data(), cut);
    const size_t rest = bytes.size() - cut;
    EXPECT_EQ(Crc32c(bytes.data() + cut, rest, head), whole) << cut;
    EXPECT_EQ(Crc32cCombine(head, Crc32c(bytes.data() + cut, rest), rest), whole) << cut;
  }
}

TEST(Crc32cTest, CombinesBatchesOfSamplesInOrder) {
  const auto bytes = RandomBytes(64 * 784, 4);
  uint32_t crc = 0;
  for (size_t sample = 0; sample < 64; ++sample) {
    crc = Crc32cCombine(crc, Crc32c(bytes.data() + sample * 784, 784), 784);
  }
  EXPECT_EQ(crc, Crc32c(bytes.data(), bytes.size()));
}

}  // namespace
}  // namespace hetero::base
