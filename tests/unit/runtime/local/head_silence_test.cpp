#include "runtime/local/head_silence.h"

#include <gtest/gtest.h>

namespace hetero::local {
namespace {

using Verdict = HeadSilence::Verdict;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Looks every 20 ms for a while; what it came to.
struct Watcher {
  explicit Watcher(int32_t member_timeout_seconds) : silence(member_timeout_seconds) {}
  Verdict Look(base::Duration duration, int64_t words) {
    Verdict worst = Verdict::kAlive;
    for (const base::Instant end = now + duration; now < end;) {
      now += milliseconds(20);
      worst = std::max(worst, silence.Look(words, now));
    }
    return worst;
  }
  HeadSilence silence;
  base::Instant now{seconds(1000)};
};

TEST(HeadSilenceTest, AHeadThatFallsSilentIsAskedAgainAndThenHangs) {
  Watcher watch(5);
  EXPECT_EQ(watch.Look(seconds(1), 1), Verdict::kAlive);
  EXPECT_EQ(watch.Look(milliseconds(4900), 2), Verdict::kAlive);
  EXPECT_EQ(watch.Look(milliseconds(200), 2), Verdict::kAskAgain);
  EXPECT_EQ(watch.Look(milliseconds(4700), 2), Verdict::kAlive) << "it is asked once";
  EXPECT_EQ(watch.Look(milliseconds(300), 2), Verdict::kHangs);
}

TEST(HeadSilenceTest, AnyWordEndsTheSilence) {
  Watcher watch(1);
  EXPECT_EQ(watch.silence.limit(), seconds(12)) << "3 x 4 s before its first word";
  for (int64_t word = 1; word < 20; ++word) {
    EXPECT_NE(watch.Look(milliseconds(3900), word), Verdict::kHangs);
  }
  EXPECT_EQ(watch.silence.limit(), seconds(4));
}

TEST(HeadSilenceTest, AHeadThatStillStartsHasMoreTime) {
  Watcher watch(5);
  EXPECT_NE(watch.Look(seconds(29), 0), Verdict::kHangs);
  EXPECT_EQ(watch.Look(seconds(2), 0), Verdict::kHangs);
}

TEST(HeadSilenceTest, ANewHeadHasItsOwnTime) {
  Watcher watch(5);
  watch.Look(seconds(1), 40);
  EXPECT_EQ(watch.Look(seconds(11), 40), Verdict::kHangs);
  watch.silence.Begin(40);
  EXPECT_NE(watch.Look(seconds(29), 40), Verdict::kHangs);
  EXPECT_EQ(watch.Look(seconds(1), 41), Verdict::kAlive);
  EXPECT_EQ(watch.Look(seconds(11), 41), Verdict::kHangs);
}

// The launcher was stopped, or the machine suspended on a clock that went on.
TEST(HeadSilenceTest, ASuspendedLauncherBlamesNoHead) {
  Watcher watch(5);
  watch.Look(seconds(2), 1);
  watch.now += seconds(3600);
  EXPECT_EQ(watch.Look(milliseconds(20), 1), Verdict::kAlive);
  EXPECT_EQ(watch.Look(seconds(1), 2), Verdict::kAlive);
}

}  // namespace
}  // namespace hetero::local
