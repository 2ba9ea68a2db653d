#include "operator/reconcile/head_limits.h"

#include <gtest/gtest.h>

namespace hetero::reconcile {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const base::Instant kStart = base::Instant(std::chrono::hours(1));
constexpr int64_t kLargest = 64 << 10;

TEST(HeadLimitsTest, AStatusMayGrowWithItsJobButNotForEver) {
  EXPECT_EQ(StatusMessageLimit(0), 64 << 10);
  EXPECT_EQ(StatusMessageLimit(1000), (64 << 10) + 256'000);
  EXPECT_EQ(StatusMessageLimit(int64_t{1} << 40), 64 << 20);
}

// What a head sends that keeps to the protocol: two a second.
TEST(HeadLimitsTest, AHeadThatKeepsToTheProtocolNeverWaits) {
  ReadPacer pacer(kLargest);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(pacer.Wait(kLargest / 2, kStart + i * milliseconds(500)), base::Duration::zero());
  }
}

TEST(HeadLimitsTest, AFloodOfSmallMessagesIsReadAHundredTimesASecond) {
  ReadPacer pacer(kLargest);
  base::Instant now = kStart;
  int read = 0;
  while (now < kStart + seconds(10)) {
    now += pacer.Wait(2, now);
    ++read;
  }
  EXPECT_NEAR(read, 100 + 10 * 100, 2);
}

TEST(HeadLimitsTest, AFloodOfTheLargestMessagesIsReadTwiceASecond) {
  ReadPacer pacer(kLargest);
  base::Instant now = kStart;
  int read = 0;
  while (now < kStart + seconds(10)) {
    now += pacer.Wait(kLargest, now);
    ++read;
  }
  EXPECT_NEAR(read, 2 + 10 * 2, 1);
}

}  // namespace
}  // namespace hetero::reconcile
