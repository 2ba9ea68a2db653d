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

// Each shows 1 %, but the same job was once 1.2 times as fast as the other time.
TEST(Noise, IsHalfOfWhatEqualRunsAreApart) {
  nlohmann::json faster = ReportOfSlowRun();
  faster["samplesPerSecond"] = 640 * 1.2;
  std::vector<RunReport> runs = {ReadRun(ReportOfSlowRun()), ReadRun(ReportOfFastRun()),
                                 ReadRun(faster)};
  std::vector<Noise> noises = NoisesOf(runs);
  EXPECT_NEAR(noises[0].share, 0.1, 1e-9);
  EXPECT_NEAR(noises[1].share, kLeastNoise, 1e-3);  // another manifest
  EXPECT_NEAR(noises[2].share, 0.1, 1e-9);
  runs[2].state = "Failed";
  EXPECT_NEAR(NoisesOf(runs)[0].share, kLeastNoise, 1e-3);
}

// What is measured takes the place of the guess.
TEST(Noise, OfShortRunsIsMeasuredByRepeats) {
  RunReport run = ReadRun(ReportOfSlowRun());
  run.time_line.clear();
  const std::vector<Noise> noises = NoisesOf({run, run});
  EXPECT_TRUE(noises[0].measured);
  EXPECT_EQ(noises[0].share, kLeastNoise);
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
