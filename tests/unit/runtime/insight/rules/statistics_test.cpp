#include "runtime/insight/rules/statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace hetero::insight {
namespace {

using Series = std::vector<std::pair<double, double>>;

Series Line(int points, double from, double by) {
  Series series;
  for (int i = 0; i < points; ++i) series.emplace_back(i, from + by * i);
  return series;
}

TEST(StatisticsTest, PercentilesLieBetweenNeighbours) {
  EXPECT_EQ(Percentile({}, 50), 0);
  EXPECT_EQ(Percentile({7}, 95), 7);
  EXPECT_EQ(Percentile({3, 1, 2}, 0), 1);
  EXPECT_EQ(Percentile({3, 1, 2}, 100), 3);
  EXPECT_DOUBLE_EQ(Percentile({0, 10}, 25), 2.5);
  EXPECT_EQ(Median({5, 1, 3, 100}), 4);
  EXPECT_EQ(Mean({}), 0);
  EXPECT_EQ(Mean({1, 2, 6}), 3);
}

TEST(StatisticsTest, ALineGrowsSteadily) {
  EXPECT_DOUBLE_EQ(SteadyGrowth(Line(120, 5, 1)), 100);
  EXPECT_EQ(SteadyGrowth(Line(120, 5, 0)), 0);
  EXPECT_EQ(SteadyGrowth(Line(120, 500, -1)), 0);
  EXPECT_EQ(SteadyGrowth(Line(11, 5, 1)), 0);
}

TEST(StatisticsTest, WhatHasGrownOnceDoesNotGrowSteadily) {
  Series step = Line(120, 5, 0);
  for (int i = 20; i < 120; ++i) step[i].second = 50;
  EXPECT_EQ(SteadyGrowth(step), 0);
  Series filling;
  for (int i = 0; i < 120; ++i) filling.emplace_back(i, 100 - 100.0 / (1 + i));
  EXPECT_EQ(SteadyGrowth(filling), 0);
}

TEST(StatisticsTest, HistogramsAreFarOrNear) {
  EXPECT_EQ(HistogramDistance({0, 0}, {1, 1, 1}), 1);
  EXPECT_EQ(HistogramDistance({0.3, 0.6}, {0.6, 0.3}), 0);
  EXPECT_NEAR(HistogramDistance({0.88}, {0.92}), 0.16, 1e-9);
  EXPECT_EQ(HistogramDistance({}, {0.5}), 0);
}

}  // namespace
}  // namespace hetero::insight
