#include "base/refusal_throttle.h"

#include <gtest/gtest.h>

namespace hetero::base {
namespace {

constexpr Instant kStart{std::chrono::hours(100)};

TEST(RefusalThrottle, TellsTheFirstOfEachKindAtOnce) {
  RefusalThrottle throttle;
  EXPECT_TRUE(throttle.Admit("a", kStart).tell);
  EXPECT_TRUE(throttle.Admit("b", kStart).tell);
  EXPECT_FALSE(throttle.Admit("a", kStart).tell);
}

TEST(RefusalThrottle, TellsOneAMinuteAndHowManyItKeptBack) {
  RefusalThrottle throttle;
  throttle.Admit("a", kStart);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(throttle.Admit("a", kStart).tell);
  const RefusalThrottle::Decision later = throttle.Admit("a", kStart + RefusalThrottle::kPeriod);
  EXPECT_TRUE(later.tell);
  EXPECT_EQ(later.untold, 1000);
}

TEST(RefusalThrottle, LimitsAllKindsTogether) {
  RefusalThrottle throttle;
  int told = 0;
  for (int i = 0; i < 5000; ++i) told += throttle.Admit(std::to_string(i), kStart).tell ? 1 : 0;
  EXPECT_EQ(told, RefusalThrottle::kLinesPerPeriod);
  const RefusalThrottle::Decision later = throttle.Admit("4999", kStart + RefusalThrottle::kPeriod);
  EXPECT_TRUE(later.tell);
  EXPECT_EQ(later.untold, 1);
}

}  // namespace
}  // namespace hetero::base
