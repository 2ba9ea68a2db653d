#include "runtime/insight/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace hetero::insight {
namespace {

TEST(HistogramTest, QuantilesAreThoseOfTheSortedValuesWithinABucket) {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same in each run
  std::lognormal_distribution<double> times(-4, 1.5);
  Histogram histogram;
  std::vector<double> values(20'000);
  for (double& value : values) {
    value = times(random);
    histogram.Add(value);
  }
  std::sort(values.begin(), values.end());
  for (const double share : {0.01, 0.5, 0.9, 0.95, 0.99, 1.0}) {
    const auto at = std::min(static_cast<size_t>(share * 20'000), size_t{19'999});
    EXPECT_NEAR(histogram.Quantile(share) / values[at], 1, 0.05) << share;
  }
  EXPECT_EQ(histogram.count(), 20'000);
}

TEST(HistogramTest, WhateverIsAddedItStaysSmallAndItsCountsFinite) {
  Histogram histogram;
  EXPECT_EQ(histogram.Quantile(0.5), 0);
  for (double value = 1e-300; value < 1e300; value *= 1.03) histogram.Add(value);
  histogram.Add(std::numeric_limits<double>::infinity());
  histogram.Add(std::nan(""));
  histogram.Add(-1);
  histogram.Add(0);
  EXPECT_LE(histogram.buckets().size(), 386u);
  histogram.AddToBucket(std::numeric_limits<int32_t>::max(), std::numeric_limits<int64_t>::max());
  histogram.AddToBucket(0, std::numeric_limits<int64_t>::max());
  histogram.AddToBucket(0, -5);
  histogram.Add(histogram);
  EXPECT_EQ(histogram.count(), int64_t{1} << 61);
  EXPECT_TRUE(std::isfinite(histogram.Quantile(1)));
}

TEST(HistogramTest, NothingAtAllIsZero) {
  Histogram histogram;
  histogram.Add(0, 9);
  histogram.Add(1);
  EXPECT_EQ(histogram.Quantile(0.5), 0);
  EXPECT_NEAR(histogram.Quantile(0.95), 1, 0.05);
}

TEST(HistogramTest, TwoOfThemAreOneOfAll) {
  Histogram a, b, all;
  for (int i = 1; i <= 100; ++i) {
    (i % 3 == 0 ? a : b).Add(i);
    all.Add(i);
  }
  a.Add(b);
  EXPECT_EQ(a.buckets(), all.buckets());
  EXPECT_EQ(a.count(), 100);
}

}  // namespace
}  // namespace hetero::insight
