#include "runtime/job/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace hetero::job {
namespace {

using Block = std::array<uint32_t, 4>;

// The philox4x32-10 lines of kat_vectors in the Random123 distribution.
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(Philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStreamTest, DrawsSuccessiveBlocksOfTheCounter) {
  RandomStream stream(0x0000000200000001, 3, 0x0000000500000004, 6);
  for (uint32_t block = 0; block < 3; ++block) {
    for (uint32_t word : Philox4x32({block, 4, 5 | 6u << 16, 3}, {1, 2})) {
      EXPECT_EQ(stream.NextUint32(), word);
    }
  }
}

TEST(RandomStreamTest, EveryArgumentSelectsAnotherStream) {
  const auto first = [](RandomStream stream) {
    return uint64_t{stream.NextUint32()} << 32 | stream.NextUint32();
  };
  std::set<uint64_t> seen;
  for (uint64_t seed : {0ull, 1ull, 1ull << 32}) {
    for (int64_t epoch : {0, 1}) {
      for (int64_t sample : {int64_t{0}, int64_t{1}, int64_t{1} << 32, int64_t{1} << 47}) {
        for (int32_t position : {0, 1, 65535}) {
          seen.insert(first(RandomStream(seed, epoch, sample, position)));
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 3u * 2 * 4 * 3);
}

// As the documentation has it: the view in bits 6 to 15 of the counter's third word.
TEST(RandomStreamTest, AViewIsAPartOfTheCounter) {
  RandomStream stream(0x0000000200000001, 3, 0x0000000500000004, 6, 1023);
  for (uint32_t block = 0; block < 3; ++block) {
    for (uint32_t word : Philox4x32({block, 4, 5 | 1023u << 6 | 6u << 16, 3}, {1, 2})) {
      EXPECT_EQ(stream.NextUint32(), word);
    }
  }
}

TEST(RandomStreamTest, NoTwoViewsDrawTheSameNumbers) {
  const auto first = [](RandomStream stream) {
    return uint64_t{stream.NextUint32()} << 32 | stream.NextUint32();
  };
  std::set<uint64_t> seen;
  const int64_t last = RandomStream::kMostIdsWithViews - 1;
  for (int64_t sample : {int64_t{0}, int64_t{1} << 32, last}) {
    for (int32_t position : {0, 1, 65535}) {
      for (int32_t view = 0; view < 1024; ++view) {
        seen.insert(first(RandomStream(7, 0, sample, position, view)));
      }
    }
  }
  EXPECT_EQ(seen.size(), 3u * 3 * 1024);
}

TEST(RandomStreamTest, FloatsAreUniformInTheUnitInterval) {
  RandomStream stream(1, 0, 0, 0);
  constexpr int kDraws = 200000;
  double sum = 0, sum_of_squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = i % 2 == 0 ? stream.NextFloat() : stream.NextDouble();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
    sum_of_squares += value * value;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(1.0 / 12 / kDraws));
  EXPECT_NEAR(sum_of_squares / kDraws, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / kDraws));
}

TEST(RandomStreamTest, UniformStaysBelowItsMaximum) {
  RandomStream stream(2, 0, 0, 0);
  const double max = std::nextafter(1.0, 2.0);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(stream.Uniform(1.0, max), 1.0);  // the only number in [1, next after 1)
    const double value = stream.Uniform(-3, 5);
    EXPECT_GE(value, -3);
    EXPECT_LT(value, 5);
  }
  EXPECT_EQ(stream.Uniform(4, 4), 4);
}

TEST(RandomStreamTest, BelowIsUniform) {
  RandomStream stream(3, 0, 0, 0);
  constexpr int kDraws = 70000;
  std::vector<int> counts(7);
  for (int i = 0; i < kDraws; ++i) ++counts[stream.Below(7)];
  double chi_square = 0;
  for (int count : counts) chi_square += (count - 10000.0) * (count - 10000.0) / 10000;
  EXPECT_LT(chi_square, 35);  // 6 degrees of freedom
  for (int i = 0; i < 100; ++i) EXPECT_EQ(stream.Below(1), 0u);
}

// Of 2^32 raw values mapped to 3 x 2^30 results without rejection, every third result would come
// twice as often as the others.
TEST(RandomStreamTest, BelowHasNoBiasForLargeBounds) {
  RandomStream stream(4, 0, 0, 0);
  constexpr uint32_t kBound = 0xC0000000;
  constexpr int kDraws = 90000;
  int counts[3] = {};
  for (int i = 0; i < kDraws; ++i) ++counts[stream.Below(kBound) % 3];
  for (int count : counts) EXPECT_NEAR(count, 30000, 5 * std::sqrt(30000 * 2.0 / 3));
}

}  // namespace
}  // namespace hetero::job
