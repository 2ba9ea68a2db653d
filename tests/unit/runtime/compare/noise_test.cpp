#include "runtime/compare/noise.h"

#include <gtest/gtest.h>

#include "tests/unit/runtime/compare/sample_runs.h"

namespace hetero::compare {
namespace {

Noise NoiseOfRates(const std::vector<double>& rates) {
  nlohmann::json report = ReportOfSlowRun();
  report["timeLines"] = TimeLine(rates);
  return NoiseOf(ReadRun(report).time_line);
}

TEST(Quantile, LiesBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(QuantileOf({3, 1, 2}, 0.5), 2);
  EXPECT_DOUBLE_EQ(QuantileOf({4, 1, 3, 2}, 0.25), 1.75);
  EXPECT_DOUBLE_EQ(QuantileOf({7}, 0.75), 7);
}

TEST(Noise, IsHalfTheDistanceBetweenTheQuartiles) {
  const Noise noise = NoiseOfRates({8, 9, 10, 11, 12});
  EXPECT_TRUE(noise.measured);
  EXPECT_NEAR(noise.share, 0.1, 1e-9);
}

// One second in which the machine did something else changes little.
TEST(Noise, HardlyKnowsASingleOutlier) {
  EXPECT_NEAR(NoiseOfRates({10, 10, 10, 1, 10, 10, 10, 10}).share, kLeastNoise, 1e-9);
}

TEST(Noise, IsAssumedForShortRuns) {
  EXPECT_FALSE(NoiseOfRates({10, 11, 12}).measured);
  EXPECT_EQ(NoiseOfRates({10, 11, 12}).share, kAssumedNoise);
  EXPECT_EQ(NoiseOf({}).share, kAssumedNoise);
  EXPECT_TRUE(NoiseOfRates({10, 11, 12, 11}).measured);
}

TEST(Noise, LeavesOutWhereAProcessBeganAgain) {
  std::vector<RatePoint> line;
  for (int i = 0; i <= 4; ++i) line.push_back({10.0 * i, 1.0 * i});
  for (int i = 0; i <= 4; ++i) line.push_back({10.0 + 10.0 * i, 20.0 + i});  // from step 10 again
  EXPECT_NEAR(NoiseOf(line).share, kLeastNoise, 1e-9);
}

TEST(WithinNoise, SaysTheSameOfARatioAndItsInverse) {
  const Noise two{.share = 0.02, .measured = true};
  const Noise three{.share = 0.03, .measured = true};
  EXPECT_TRUE(WithinNoise(1.049, two, three));
  EXPECT_TRUE(WithinNoise(1 / 1.049, two, three));
  EXPECT_FALSE(WithinNoise(1.051, two, three));
  EXPECT_FALSE(WithinNoise(1 / 1.051, two, three));
}

}  // namespace
}  // namespace hetero::compare
