#include "base/backoff.h"

#include <gtest/gtest.h>

namespace hetero::base {
namespace {

using std::chrono::milliseconds;

Backoff::Options Fast() {
  return {.initial = milliseconds(100), .max = milliseconds(1000), .multiplier = 3, .jitter = 0.5};
}

TEST(BackoffTest, GrowsToItsCapAndStartsAgain) {
  Backoff backoff(Fast(), [] { return 0.0; });
  for (int want : {100, 300, 900, 1000, 1000}) {
    EXPECT_NEAR(ToSeconds(backoff.Next()), want / 1000.0, 1e-6);
  }
  EXPECT_EQ(backoff.attempts(), 5);
  backoff.Reset();
  EXPECT_EQ(backoff.attempts(), 0);
  EXPECT_NEAR(ToSeconds(backoff.Next()), 0.1, 1e-6);
}

TEST(BackoffTest, JitterShortensByTheRandomShare) {
  double random = 0;
  Backoff backoff(Fast(), [&] { return random; });
  random = 0.5;
  EXPECT_NEAR(ToSeconds(backoff.Next()), 0.075, 1e-6);
  random = 0.999999;
  EXPECT_NEAR(ToSeconds(backoff.Next()), 0.150, 1e-5);
}

TEST(BackoffTest, InitialAboveTheCapIsCapped) {
  Backoff backoff({.initial = milliseconds(500), .max = milliseconds(200), .jitter = 0});
  EXPECT_NEAR(ToSeconds(backoff.Next()), 0.2, 1e-6);
}

TEST(BackoffTest, SystemRandomIsInTheUnitIntervalAndVaries) {
  const Backoff::Random random = Backoff::SystemRandom();
  double low = 1, high = 0;
  for (int i = 0; i < 1000; ++i) {
    const double value = random();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    low = std::min(low, value);
    high = std::max(high, value);
  }
  EXPECT_LT(low, 0.1);
  EXPECT_GT(high, 0.9);
}

}  // namespace
}  // namespace hetero::base
