#include "runtime/pipeline/exact_math.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hetero::pipeline {
namespace {

TEST(ExactMath, ExpAgreesWithLibm) {
  for (double x = -690; x < 690; x += 0.37) {
    EXPECT_NEAR(ExactExp(x) / std::exp(x), 1, 2e-15) << x;
  }
  EXPECT_EQ(ExactExp(0), 1);
  EXPECT_EQ(ExactExp(-1e9), 0);
}

TEST(ExactMath, LogAgreesWithLibm) {
  for (double x = 1e-6; x < 1e6; x *= 1.0173) {
    EXPECT_NEAR(ExactLog(x), std::log(x), 1e-15 * std::max(1.0, std::abs(std::log(x)))) << x;
  }
  EXPECT_EQ(ExactLog(1), 0);
}

TEST(ExactMath, RoundsTiesToEven) {
  EXPECT_EQ(RoundHalfEven(0.5), 0);
  EXPECT_EQ(RoundHalfEven(1.5), 2);
  EXPECT_EQ(RoundHalfEven(2.5), 2);
  EXPECT_EQ(RoundHalfEven(-0.5), 0);
  EXPECT_EQ(RoundHalfEven(-1.5), -2);
  EXPECT_EQ(RoundHalfEven(2.4999), 2);
  EXPECT_EQ(RoundHalfEven(-2.6), -3);
}

}  // namespace
}  // namespace hetero::pipeline
