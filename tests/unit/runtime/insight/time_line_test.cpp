#include "runtime/insight/time_line.h"

#include <gtest/gtest.h>

namespace hetero::insight {
namespace {

TEST(TimeLineTest, KeepsFirstAndLastAndStaysSmall) {
  TimeLine line;
  for (int64_t i = 1; i <= 5000; ++i) {
    line.Add({.step = i, .seconds = static_cast<double>(i), .phases = {.wait = double(i)}});
    EXPECT_EQ(line.points().front().step, 1);
    EXPECT_EQ(line.points().back().step, i);
    EXPECT_LT(line.points().size(), TimeLine::kMaxPoints);
  }
  EXPECT_GT(line.points().size(), TimeLine::kMaxPoints / 3);
  for (size_t i = 1; i < line.points().size(); ++i) {
    EXPECT_LT(line.points()[i - 1].seconds, line.points()[i].seconds);
  }
}

TEST(TimeLineTest, RepetitionsAreLeftOut) {
  TimeLine line;
  line.Add({.step = 1, .seconds = 2});
  line.Add({.step = 1, .seconds = 2});
  line.Add({.step = 0, .seconds = 1});
  EXPECT_EQ(line.points().size(), 1u);
}

}  // namespace
}  // namespace hetero::insight
