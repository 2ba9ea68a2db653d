#include "runtime/insight/figures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hetero::insight {
namespace {

TEST(CountText, GroupsThousands) {
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(1000), "1,000");
  EXPECT_EQ(CountText(-1234567), "-1,234,567");
  EXPECT_EQ(CountText(-123), "-123");
}

TEST(NumberText, HasThreeSignificantDigits) {
  EXPECT_EQ(NumberText(0), "0");
  EXPECT_EQ(NumberText(0.04123), "0.0412");
  EXPECT_EQ(NumberText(4.126), "4.13");
  EXPECT_EQ(NumberText(41.26), "41.3");
  EXPECT_EQ(NumberText(412.6), "413");
  EXPECT_EQ(NumberText(4126.2), "4,126");
  EXPECT_EQ(NumberText(-2.5), "-2.50");
}

TEST(NumberText, KeepsThreeDigitsWhenRoundingCarries) {
  EXPECT_EQ(NumberText(9.996), "10.0");
  EXPECT_EQ(NumberText(99.96), "100");
  EXPECT_EQ(NumberText(999.6), "1,000");
  EXPECT_EQ(NumberText(0.09996), "0.100");
}

TEST(NumberText, WritesTinyNumbersAsPowers) { EXPECT_EQ(NumberText(1.234e-6), "1.23e-06"); }

TEST(Figures, NotFiniteIsADash) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(NumberText(nan), "-");
  EXPECT_EQ(DurationText(infinity), "-");
  EXPECT_EQ(BytesText(nan), "-");
  EXPECT_EQ(PercentText(-infinity), "-");
}

TEST(DurationText, PicksTheUnit) {
  EXPECT_EQ(DurationText(0), "0 s");
  EXPECT_EQ(DurationText(412e-6), "412 \u00b5s");
  EXPECT_EQ(DurationText(0.0312), "31.2 ms");
  EXPECT_EQ(DurationText(0.99996), "1.00 s");
  EXPECT_EQ(DurationText(31.04), "31.0 s");
  EXPECT_EQ(DurationText(125.2), "2 min 05 s");
  EXPECT_EQ(DurationText(3599.7), "1 h 00 min");
  EXPECT_EQ(DurationText(11540), "3 h 12 min");
}

TEST(BytesText, PicksTheUnit) {
  EXPECT_EQ(BytesText(512), "512 B");
  EXPECT_EQ(BytesText(18'400'000), "18.4 MB");
  EXPECT_EQ(BytesText(999'950), "1.00 MB");
  EXPECT_EQ(BytesText(1.21e9), "1.21 GB");
}

}  // namespace
}  // namespace hetero::insight
