#include "operator/controller/rate_limiter.h"

#include <gtest/gtest.h>

namespace hetero::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

const base::Instant kStart = base::Instant(std::chrono::hours(1));

// No overall bucket to speak of.
RateLimiter KeysOnly(base::Duration first, base::Duration max) {
  return RateLimiter({.first = first, .max = max, .qps = 1e9, .burst = 1'000'000});
}

// client-go, default_rate_limiters_test.go, TestItemExponentialFailureRateLimiter.
TEST(RateLimiterTest, EachFailureOfAKeyDoublesItsDelay) {
  RateLimiter limiter = KeysOnly(milliseconds(1), seconds(1));
  for (const int wanted : {1, 2, 4, 8, 16}) {
    EXPECT_EQ(limiter.When("one", kStart), milliseconds(wanted));
  }
  EXPECT_EQ(limiter.Failures("one"), 5);

  EXPECT_EQ(limiter.When("two", kStart), milliseconds(1));
  EXPECT_EQ(limiter.When("two", kStart), milliseconds(2));
  EXPECT_EQ(limiter.Failures("two"), 2);

  limiter.Forget("one");
  EXPECT_EQ(limiter.Failures("one"), 0);
  EXPECT_EQ(limiter.When("one", kStart), milliseconds(1));
  EXPECT_EQ(limiter.Failures("two"), 2);
}

// TestItemExponentialFailureRateLimiterOverFlow.
TEST(RateLimiterTest, AThousandFailuresStayAtTheLongestDelay) {
  RateLimiter limiter = KeysOnly(milliseconds(1), seconds(1000));
  for (int i = 0; i < 5; ++i) limiter.When("one", kStart);
  EXPECT_EQ(limiter.When("one", kStart), milliseconds(32));
  for (int i = 0; i < 2000; ++i) limiter.When("overflow1", kStart);
  EXPECT_EQ(limiter.When("overflow1", kStart), seconds(1000));

  RateLimiter slow = KeysOnly(std::chrono::minutes(1), std::chrono::hours(1000));
  for (int i = 0; i < 2; ++i) slow.When("two", kStart);
  EXPECT_EQ(slow.When("two", kStart), std::chrono::minutes(4));
  for (int i = 0; i < 2000; ++i) slow.When("overflow2", kStart);
  EXPECT_EQ(slow.When("overflow2", kStart), std::chrono::hours(1000));
}

TEST(RateLimiterTest, DefaultsAreClientGosUpToHalfAMinute) {
  RateLimiter limiter;
  EXPECT_EQ(limiter.When("one", kStart), milliseconds(5));
  EXPECT_EQ(limiter.When("one", kStart), milliseconds(10));
  for (int i = 0; i < 10; ++i) limiter.When("one", kStart + std::chrono::hours(i + 1));
  // 5 ms x 2^12 = 20.48 s, then the cap.
  EXPECT_EQ(limiter.When("one", kStart + std::chrono::hours(20)), milliseconds(20'480));
  EXPECT_EQ(limiter.When("one", kStart + std::chrono::hours(21)), seconds(30));
}

TEST(RateLimiterTest, AHundredKeysAtOnceAndThenTenPerSecond) {
  RateLimiter limiter;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(limiter.When("burst" + std::to_string(i), kStart), milliseconds(5)) << i;
  }
  for (int i = 1; i <= 50; ++i) {
    EXPECT_NEAR(base::ToSeconds(limiter.When("late" + std::to_string(i), kStart)), 0.1 * i, 1e-6);
  }
  // What was promised counts: 50 tokens are owed, 5 s later the bucket is empty, not full.
  EXPECT_NEAR(base::ToSeconds(limiter.When("later", kStart + seconds(5))), 0.1, 1e-6);
}

TEST(RateLimiterTest, TheBucketFillsUpToItsBurstOnly) {
  RateLimiter limiter({.first = nanoseconds(1), .max = nanoseconds(1), .qps = 10, .burst = 3});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limiter.When("a", kStart), nanoseconds(1));
  EXPECT_NEAR(base::ToSeconds(limiter.When("a", kStart)), 0.1, 1e-6);
  const base::Instant later = kStart + std::chrono::hours(1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limiter.When("a", later), nanoseconds(1));
  EXPECT_NEAR(base::ToSeconds(limiter.When("a", later)), 0.1, 1e-6);
}

// TestMaxOfRateLimiter: the larger of the two, and each counts on its own.
TEST(RateLimiterTest, TheLargerOfKeyAndBucketWins) {
  RateLimiter limiter({.first = seconds(1), .max = seconds(60), .qps = 1, .burst = 1});
  EXPECT_EQ(limiter.When("a", kStart), seconds(1));  // key: 1 s, bucket: 0
  EXPECT_EQ(limiter.When("b", kStart), seconds(1));  // both 1 s
  EXPECT_EQ(limiter.When("c", kStart), seconds(2));  // bucket
  EXPECT_EQ(limiter.When("a", kStart), seconds(3));  // bucket; key: 2 s
  EXPECT_EQ(limiter.When("a", kStart), seconds(4));  // both 4 s
  EXPECT_EQ(limiter.When("a", kStart), seconds(8));  // key
  EXPECT_EQ(limiter.Failures("a"), 4);
}

// A thousand starts ask twice each for another pass: they used to take the tokens, and a genuine
// failure waited three minutes for one.
TEST(RateLimiterTest, SuccessesTakeNoTokensFromFailures) {
  RateLimiter limiter;
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 0; i < 1000; ++i) {
      EXPECT_EQ(limiter.WhenAgain("job" + std::to_string(i)), milliseconds(5 << pass));
    }
  }
  EXPECT_EQ(limiter.When("failed", kStart), milliseconds(5));
}

TEST(RateLimiterTest, AKeyThatAlwaysWantsAnotherPassDoesNotSpin) {
  RateLimiter limiter;
  for (int i = 0; i < 20; ++i) limiter.WhenAgain("one");
  EXPECT_EQ(limiter.WhenAgain("one"), seconds(30));
}

TEST(RateLimiterTest, AStormOfFailuresHoldsNobodyUpForMinutes) {
  RateLimiter limiter;
  for (int i = 0; i < 10'000; ++i) limiter.When("storm" + std::to_string(i), kStart);
  EXPECT_EQ(limiter.When("one", kStart), seconds(10));
  EXPECT_LT(limiter.When("two", kStart + seconds(11)), milliseconds(10)) << "and it is over soon";
}

}  // namespace
}  // namespace hetero::controller
