#include "base/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace hetero::metrics {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(MetricsTest, SameNameAndLabelsAreTheSameMetric) {
  Registry registry;
  Counter counter = registry.GetCounter("steps_total", "Steps.", {{"rank", "0"}});
  counter.Add();
  registry.GetCounter("steps_total", "Steps.", {{"rank", "0"}}).Add(2);
  registry.GetCounter("steps_total", "Steps.", {{"rank", "1"}}).Add(10);
  EXPECT_EQ(counter.value(), 3);
  counter.Add(-1);
  EXPECT_EQ(counter.value(), 3);
}

TEST(MetricsTest, GaugesGoBothWays) {
  Registry registry;
  Gauge gauge = registry.GetGauge("queue_depth", "Batches waiting.");
  gauge.Set(5);
  gauge.Add(-2);
  EXPECT_EQ(gauge.value(), 3);
}

// Text format 0.0.4 of Prometheus' documentation.
TEST(MetricsTest, TextIsWhatPrometheusReads) {
  Registry registry;
  registry.GetCounter("batches_total", "Batches.", {{"worker", "cpu-\"0\""}}).Add(7);
  Histogram seconds = registry.GetHistogram("step_seconds", "Step time.", {0.5, 1});
  seconds.Observe(0.25);
  seconds.Observe(0.75);
  seconds.Observe(4);
  const std::string text = registry.Text();
  EXPECT_THAT(text, HasSubstr("# HELP batches_total Batches.\n# TYPE batches_total counter\n"
                              "batches_total{worker=\"cpu-\\\"0\\\"\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE step_seconds histogram\n"));
  EXPECT_THAT(text, HasSubstr("step_seconds_count 3\n"));
  EXPECT_THAT(text, HasSubstr("step_seconds_sum 5\n"));
  EXPECT_THAT(text, HasSubstr("step_seconds_bucket{le=\"0.5\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("step_seconds_bucket{le=\"1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("step_seconds_bucket{le=\"+Inf\"} 3\n"));
}

TEST(MetricsTest, ExponentialBucketsMultiply) {
  EXPECT_THAT(ExponentialBuckets(0.25, 2, 4), ElementsAre(0.25, 0.5, 1, 2));
}

TEST(MetricsDeathTest, BadNamesEndTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Registry registry;
  EXPECT_DEATH(registry.GetCounter("not a name", "x"), "metric=\"not a name\"");
  registry.GetCounter("twice", "x");
  EXPECT_DEATH(registry.GetGauge("twice", "x"), "metric=twice");
}

}  // namespace
}  // namespace hetero::metrics
