#include "runtime/job/replacement.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace hetero::job {
namespace {

TEST(ReplacementTest, IsAFunctionOfItsArgumentsInRange) {
  std::vector<int> counts(10);
  for (int64_t slot = 0; slot < 10000; ++slot) {
    const int64_t sample = Replacement(5, 1, slot, 1, 10);
    ASSERT_GE(sample, 0);
    ASSERT_LT(sample, 10);
    ASSERT_EQ(sample, Replacement(5, 1, slot, 1, 10));
    ++counts[sample];
  }
  double chi_square = 0;
  for (int count : counts) chi_square += (count - 1000.0) * (count - 1000.0) / 1000;
  EXPECT_LT(chi_square, 40);  // 9 degrees of freedom
}

TEST(ReplacementTest, EveryArgumentMatters) {
  constexpr int64_t kSamples = int64_t{1} << 60;
  const std::set<int64_t> found = {
      Replacement(1, 2, 3, 4, kSamples), Replacement(0, 2, 3, 4, kSamples),
      Replacement(1, 0, 3, 4, kSamples), Replacement(1, 2, 0, 4, kSamples),
      Replacement(1, 2, 3, 5, kSamples)};
  EXPECT_EQ(found.size(), 5u);
}

TEST(ReplacementTest, SuccessiveAttemptsReachEverySample) {
  std::set<int64_t> found;
  for (int32_t attempt = 1; attempt <= 400; ++attempt)
    found.insert(Replacement(1, 0, 9, attempt, 50));
  EXPECT_EQ(found.size(), 50u);
}

}  // namespace
}  // namespace hetero::job
