#include "runtime/insight/line_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/insight/figures.h"

namespace hetero::insight {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

LineChart ChartOf(std::vector<ChartPoint> points) {
  LineChart chart;
  chart.description = "loss";
  chart.x_name = "step";
  chart.y_text = NumberText;
  chart.series = {{"training", "line", std::move(points)}};
  return chart;
}

TEST(AxisTicks, AreRoundAndInside) {
  EXPECT_THAT(AxisTicks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(AxisTicks(3, 97, 5), ElementsAre(20, 40, 60, 80));
  EXPECT_THAT(AxisTicks(0, 0.05, 5), ElementsAre(DoubleNear(0, 1e-12), DoubleNear(0.01, 1e-12),
                                                 DoubleNear(0.02, 1e-12), DoubleNear(0.03, 1e-12),
                                                 DoubleNear(0.04, 1e-12), DoubleNear(0.05, 1e-12)));
}

TEST(RunningMedian, IgnoresSpikesAndGaps) {
  const std::vector<ChartPoint> medians =
      RunningMedian({{1, 1}, {2, 50}, {3, 1}, {4, kNan}, {5, 1}}, 5);
  ASSERT_EQ(medians.size(), 5u);
  for (const ChartPoint& point : medians) EXPECT_EQ(point.y, 1) << point.x;
}

TEST(RenderLineChart, HasNothingToDrawWithoutFinitePoints) {
  EXPECT_EQ(RenderLineChart(ChartOf({})), "");
  EXPECT_EQ(RenderLineChart(ChartOf({{1, kNan}})), "");
  EXPECT_EQ(RenderLineChart(LineChart{}), "");
}

TEST(RenderLineChart, NeverWritesNumbersThatAreNotFinite) {
  const std::string html = RenderLineChart(
      ChartOf({{1, 2}, {2, kNan}, {3, std::numeric_limits<double>::infinity()}, {4, 1}}));
  EXPECT_THAT(html, HasSubstr("<path class=\"line\""));
  EXPECT_THAT(html, Not(HasSubstr("nan")));
  EXPECT_THAT(html, Not(HasSubstr("inf")));
}

TEST(RenderLineChart, DrawsASinglePointAsADot) {
  EXPECT_THAT(RenderLineChart(ChartOf({{1, 0.5}})), HasSubstr("<path class=\"dots\""));
}

TEST(RenderLineChart, SaysWhatLiesAboveTheAxis) {
  std::vector<ChartPoint> points = {{1, 90}};
  for (int step = 2; step <= 100; ++step) points.push_back({static_cast<double>(step), 1});
  EXPECT_THAT(RenderLineChart(ChartOf(points)),
              HasSubstr("1 point above the axis; the highest is 90.0 at step 1."));
}

TEST(RenderLineChart, StaysSmallForLongRuns) {
  std::vector<ChartPoint> points;
  for (int step = 1; step <= 100'000; ++step) {
    points.push_back({static_cast<double>(step), std::abs(std::sin(step))});
  }
  EXPECT_LT(RenderLineChart(ChartOf(points)).size(), 64u << 10);
}

}  // namespace
}  // namespace hetero::insight
