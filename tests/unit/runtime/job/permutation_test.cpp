#include "runtime/job/permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <vector>

namespace hetero::job {
namespace {

using api::Shuffle;
using api::ShuffleMode;

constexpr Shuffle kFull{.mode = ShuffleMode::kFull};

std::vector<int64_t> Order(const Permutation& permutation) {
  std::vector<int64_t> order(permutation.size());
  for (int64_t slot = 0; slot < permutation.size(); ++slot) order[slot] = permutation.At(slot);
  return order;
}

// Whether every value of [0, size) comes exactly once.
bool IsBijection(const std::vector<int64_t>& order) {
  std::vector<bool> seen(order.size());
  for (int64_t sample : order) {
    if (sample < 0 || sample >= static_cast<int64_t>(order.size()) || seen[sample]) return false;
    seen[sample] = true;
  }
  return true;
}

int64_t FixedPoints(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  int64_t equal = 0;
  for (size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i];
  return equal;
}

TEST(PermutationTest, FullIsABijectionForEverySmallSize) {
  for (int64_t size = 1; size <= 2000; ++size) {
    ASSERT_TRUE(IsBijection(Order(Permutation(42, size % 5, size, kFull)))) << size;
  }
}

TEST(PermutationTest, FullIsABijectionAroundPowersOfTwoAndBeyond) {
  for (int64_t size :
       {4095, 4096, 4097, 10007, 16383, 16384, 16385, 60000, 65535, 65536, 65537, 99991, 100000}) {
    ASSERT_TRUE(IsBijection(Order(Permutation(7, 3, size, kFull)))) << size;
  }
}

TEST(PermutationTest, WindowsOfBlocksAreABijectionForEverySize) {
  for (int64_t block : {1, 3, 16, 1000}) {
    for (int32_t window : {2, 3, 7, 1000000}) {
      const Shuffle shuffle{.mode = ShuffleMode::kBlock, .block_size = block, .window = window};
      for (int64_t size = 1; size <= 300; ++size) {
        ASSERT_TRUE(IsBijection(Order(Permutation(9, 1, size, shuffle))))
            << size << " / " << block << " x " << window;
      }
    }
  }
}

// What is in a window is what Block has in its slots, in another order; 1 is as without.
TEST(PermutationTest, AWindowMixesItsBlocksAndNoOthers) {
  constexpr int64_t kSize = 1003;
  Shuffle shuffle{.mode = ShuffleMode::kBlock, .block_size = 10};
  const std::vector<int64_t> blocks = Order(Permutation(3, 2, kSize, shuffle));
  shuffle.window = 1;
  EXPECT_EQ(Order(Permutation(3, 2, kSize, shuffle)), blocks);
  shuffle.window = 4;
  const std::vector<int64_t> mixed = Order(Permutation(3, 2, kSize, shuffle));
  EXPECT_LT(FixedPoints(blocks, mixed), 60);
  int64_t changes = 0;
  for (int64_t first = 0; first < kSize; first += 40) {
    const int64_t last = std::min<int64_t>(first + 40, kSize);
    EXPECT_EQ(std::set<int64_t>(blocks.begin() + first, blocks.begin() + last),
              std::set<int64_t>(mixed.begin() + first, mixed.begin() + last));
    for (int64_t slot = first + 1; slot < last; ++slot) {
      changes += mixed[slot] / 10 != mixed[slot - 1] / 10;
    }
  }
  EXPECT_GT(changes, 600);  // three of four neighbours are of different blocks
}

TEST(PermutationTest, BlockIsABijectionForEverySizeAndBlockSize) {
  for (int64_t block : {1, 2, 3, 7, 16, 64, 1000}) {
    const Shuffle shuffle{.mode = ShuffleMode::kBlock, .block_size = block};
    for (int64_t size = 1; size <= 300; ++size) {
      ASSERT_TRUE(IsBijection(Order(Permutation(9, 1, size, shuffle)))) << size << " / " << block;
    }
    ASSERT_TRUE(IsBijection(Order(Permutation(9, 1, 60001, shuffle)))) << block;
  }
}

TEST(PermutationTest, BlockModeReadsBlockAfterBlock) {
  constexpr int64_t kSize = 10 * 64 + 13;
  const Permutation permutation(3, 0, kSize, {.mode = ShuffleMode::kBlock, .block_size = 64});
  std::vector<int64_t> blocks;
  for (int64_t sample : Order(permutation)) {
    if (blocks.empty() || blocks.back() != sample / 64) blocks.push_back(sample / 64);
  }
  EXPECT_EQ(blocks.size(), 11u);  // no block is entered twice
  EXPECT_FALSE(std::is_sorted(blocks.begin(), blocks.end()));
}

TEST(PermutationTest, ShortBlockMovesFromEpochToEpoch) {
  std::set<int64_t> places;
  for (int64_t epoch = 0; epoch < 200; ++epoch) {
    const auto order =
        Order(Permutation(3, epoch, 4 * 8 + 3, {.mode = ShuffleMode::kBlock, .block_size = 8}));
    places.insert(std::find_if(order.begin(), order.end(), [](int64_t s) { return s >= 32; }) -
                  order.begin());
  }
  EXPECT_EQ(places, (std::set<int64_t>{0, 8, 16, 24, 32}));
}

TEST(PermutationTest, NoneIsTheIdentity) {
  const Permutation permutation(5, 2, 1000, {.mode = ShuffleMode::kNone});
  for (int64_t slot = 0; slot < 1000; ++slot) EXPECT_EQ(permutation.At(slot), slot);
}

TEST(PermutationTest, SameArgumentsGiveTheSameOrder) {
  EXPECT_EQ(Order(Permutation(5, 2, 5000, kFull)), Order(Permutation(5, 2, 5000, kFull)));
}

// Two unrelated random permutations agree in one place on average, with Poisson spread.
TEST(PermutationTest, EpochsAndSeedsGiveUnrelatedOrders) {
  constexpr int64_t kSize = 20000;
  const auto base = Order(Permutation(1, 0, kSize, kFull));
  for (int64_t other = 1; other <= 10; ++other) {
    EXPECT_LT(FixedPoints(base, Order(Permutation(1, other, kSize, kFull))), 10) << other;
    EXPECT_LT(FixedPoints(base, Order(Permutation(1 + other, 0, kSize, kFull))), 10) << other;
  }
}

// Correlation of slot and sample, and of neighbours, is N(0, 1/size) for a random permutation.
TEST(PermutationTest, OrderIsUncorrelated) {
  constexpr int64_t kSize = 60000;
  const auto order = Order(Permutation(11, 4, kSize, kFull));
  const double mean = (kSize - 1) / 2.0;
  double with_slot = 0, with_next = 0, variance = 0;
  for (int64_t i = 0; i < kSize; ++i) {
    const double value = order[i] - mean;
    with_slot += (i - mean) * value;
    with_next += value * (order[(i + 1) % kSize] - mean);
    variance += value * value;
  }
  const double limit = 4 / std::sqrt(static_cast<double>(kSize));
  EXPECT_LT(std::abs(with_slot / variance), limit);
  EXPECT_LT(std::abs(with_next / variance), limit);
}

// All 24 orders of four samples come up about equally often over seeds.
TEST(PermutationTest, TinyPermutationsAreAllReached) {
  std::map<std::vector<int64_t>, int> counts;
  constexpr int kDraws = 24000;
  for (int seed = 0; seed < kDraws; ++seed) ++counts[Order(Permutation(seed, 0, 4, kFull))];
  EXPECT_EQ(counts.size(), 24u);
  double chi_square = 0;
  for (const auto& [order, count] : counts)
    chi_square += (count - 1000.0) * (count - 1000.0) / 1000;
  EXPECT_LT(chi_square, 60);  // 23 degrees of freedom: exceeded with probability 4e-5
}

TEST(PermutationTest, HugeSizesAreDistinctInRangeAndUniform) {
  for (int64_t size : {int64_t{1'000'000'000'000}, int64_t{1} << 62}) {
    const Permutation permutation(13, 1, size, kFull);
    constexpr int64_t kSlots = 100'000;
    std::set<int64_t> seen;
    std::vector<int> buckets(100);
    for (int64_t i = 0; i < kSlots; ++i) {
      // Half neighbours, half far apart.
      const int64_t sample = permutation.At(i % 2 == 0 ? i : (size / kSlots) * i);
      ASSERT_GE(sample, 0);
      ASSERT_LT(sample, size);
      seen.insert(sample);
      ++buckets[static_cast<int>(static_cast<double>(sample) / size * 100)];
    }
    EXPECT_EQ(seen.size(), static_cast<size_t>(kSlots));
    double chi_square = 0;
    for (int count : buckets) chi_square += (count - 1000.0) * (count - 1000.0) / 1000;
    EXPECT_LT(chi_square, 165);  // 99 degrees of freedom: exceeded with probability 3e-5
  }
}

}  // namespace
}  // namespace hetero::job
