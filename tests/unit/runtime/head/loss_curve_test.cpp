#include "runtime/head/loss_curve.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hetero::head {
namespace {

TEST(LossCurveTest, StaysWithinTheLimitAndKeepsFirstAndLast) {
  LossCurve curve;
  for (int64_t step = 1; step <= 50'000; ++step) {
    v1::LossPoint point;
    point.set_step(step);
    curve.Add(point);
    ASSERT_LE(curve.points().size(), LossCurve::kMaxPoints);
    ASSERT_EQ(curve.points().front().step(), 1);
    ASSERT_EQ(curve.points().back().step(), step);
  }
  EXPECT_GE(curve.points().size(), LossCurve::kMaxPoints / 2);
  int64_t widest = 0;
  for (size_t i = 1; i < curve.points().size(); ++i) {
    const int64_t gap = curve.points()[i].step() - curve.points()[i - 1].step();
    ASSERT_GT(gap, 0);
    widest = std::max(widest, gap);
  }
  EXPECT_LE(widest, 64);  // even: 50,000 steps over at least 1,000 points
}

// What a member kept while the head was away comes thinned, and stands for as many steps.
TEST(LossCurveTest, IsEvenWherePointsComeThinned) {
  LossCurve curve;
  v1::LossPoint point;
  for (int64_t step = 1; step <= 1'000'000; step += step < 500'000 ? 1 : 400) {
    point.set_step(step);
    curve.Add(point);
  }
  int64_t narrowest = 1'000'000, widest = 0;
  for (size_t i = 1; i + 1 < curve.points().size(); ++i) {
    const int64_t gap = curve.points()[i].step() - curve.points()[i - 1].step();
    narrowest = std::min(narrowest, gap);
    widest = std::max(widest, gap);
  }
  EXPECT_GE(curve.points().size(), 700u);
  EXPECT_LE(widest, 2 * narrowest);
}

TEST(LossCurveTest, ShortCurvesAreWhole) {
  LossCurve curve;
  for (int64_t step = 1; step < static_cast<int64_t>(LossCurve::kMaxPoints); ++step) {
    v1::LossPoint point;
    point.set_step(step);
    curve.Add(point);
    ASSERT_EQ(curve.points().size(), static_cast<size_t>(step));
  }
}

}  // namespace
}  // namespace hetero::head
