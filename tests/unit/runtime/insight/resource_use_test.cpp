#include "runtime/insight/resource_use.h"

#include <gtest/gtest.h>

namespace hetero::insight {
namespace {

UsePoint Point(double seconds, double span, double cpu) {
  UsePoint point;
  point.seconds = seconds;
  point.span = span;
  point.cpu_seconds[static_cast<size_t>(ThreadGroup::kPipeline)] = cpu;
  point.rss_bytes = static_cast<int64_t>(1000 * seconds);
  return point;
}

TEST(ResourceUseTest, GroupsAreFoundByTheirNames) {
  for (size_t i = 0; i < kThreadGroups; ++i) {
    const auto group = static_cast<ThreadGroup>(i);
    EXPECT_EQ(ThreadGroupNamed(NameOf(group)), group);
  }
  EXPECT_EQ(ThreadGroupNamed("of a later version"), ThreadGroup::kOther);
}

TEST(ResourceUseTest, OneSpanForTwoHasTheirSumsAndMeans) {
  UsePoint a = Point(1, 1, 0.5);
  a.throttled_seconds = 0.25;
  a.io_pressure = 0.5;
  a.machine_busy_cores = 1;
  a.core_busy = std::string("\0\xff", 2);
  a.gpus = {{.index = 1, .utilization = 1, .memory_used_bytes = 7}};
  UsePoint b = Point(4, 3, 2);
  b.io_pressure = 0.1;
  b.cpu_pressure = 0.75;
  b.machine_busy_cores = 2;
  b.core_busy = std::string("\xc8\0", 2);
  b.gpus = {{.index = 0, .utilization = 0.5},
            {.index = 1, .utilization = 0.2, .memory_used_bytes = 5}};
  Join(b, a);
  EXPECT_EQ(a.seconds, 4);
  EXPECT_EQ(a.span, 4);
  EXPECT_EQ(Sum(a.cpu_seconds), 2.5);
  EXPECT_EQ(a.throttled_seconds, 0.25);
  EXPECT_DOUBLE_EQ(a.io_pressure.value(), 0.2);
  EXPECT_EQ(a.cpu_pressure, 0.75) << "what one does not know, the other says";
  EXPECT_FALSE(a.memory_pressure.has_value());
  EXPECT_EQ(a.machine_busy_cores, 1.75);
  EXPECT_EQ(static_cast<uint8_t>(a.core_busy[0]), 150);
  EXPECT_EQ(static_cast<uint8_t>(a.core_busy[1]), 64);
  EXPECT_EQ(a.rss_bytes, 4000);
  ASSERT_EQ(a.gpus.size(), 2u);
  EXPECT_DOUBLE_EQ(a.gpus[1].utilization, 0.4);
  EXPECT_EQ(a.gpus[1].memory_used_bytes, 7);
  EXPECT_DOUBLE_EQ(a.gpu_utilization().value(), 0.45);
}

TEST(ResourceUseTest, ASeriesLosesNothingHoweverLongItGets) {
  UseSeries series;
  double cpu = 0;
  for (int i = 1; i <= 100'000; ++i) {
    const double used = 0.001 * (i % 7);
    cpu += used;
    series.Add(Point(0.5 * i, 0.5, used));
    ASSERT_LT(series.points().size(), UseSeries::kMost);
  }
  EXPECT_GE(series.points().size(), UseSeries::kMost / 2 - 1);
  double sum = 0, covered = 0, before = 0;
  for (const UsePoint& point : series.points()) {
    EXPECT_GT(point.seconds, before);
    before = point.seconds;
    covered += point.span;
    sum += Sum(point.cpu_seconds);
  }
  EXPECT_NEAR(covered, 50'000, 1e-6);
  EXPECT_NEAR(sum, cpu, 1e-6);
  EXPECT_EQ(series.points().back().seconds, 50'000);
  // About evenly: no stretch is hidden in one that is much longer.
  for (size_t i = 0; i + 1 < series.points().size(); ++i) {
    EXPECT_LT(series.points()[i].span, 50'000.0 / 40);
  }
}

}  // namespace
}  // namespace hetero::insight
