#include "base/clock.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "base/fake_clock.h"

namespace hetero::base {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RealClockTest, MovesForwardWhileSleeping) {
  Clock& clock = Clock::Real();
  const Instant before = clock.Now();
  EXPECT_TRUE(clock.SleepFor(milliseconds(1)));
  EXPECT_GE(clock.Now() - before, milliseconds(1));
}

TEST(RealClockTest, StopEndsTheLongestSleepAtOnce) {
  std::stop_source stop;
  std::promise<bool> result;
  std::jthread sleeper(
      [&] { result.set_value(Clock::Real().SleepFor(Duration::max(), stop.get_token())); });
  stop.request_stop();
  EXPECT_FALSE(result.get_future().get());
  EXPECT_FALSE(Clock::Real().SleepFor(hours(1), stop.get_token()));
}

TEST(FakeClockTest, MovesOnlyByAdvance) {
  FakeClock clock;
  const Instant start = clock.Now();
  const WallTime wall = clock.WallNow();
  EXPECT_EQ(clock.Now(), start);
  clock.Advance(seconds(90));
  EXPECT_EQ(clock.Now() - start, seconds(90));
  EXPECT_EQ(clock.WallNow() - wall, seconds(90));
  EXPECT_EQ(std::chrono::system_clock::to_time_t(wall), 1767225600);  // 2026-01-01 00:00:00 UTC
}

TEST(FakeClockTest, SleepersWakeWhenTheirTimeComes) {
  FakeClock clock;
  std::promise<bool> first, second;
  std::future<bool> first_done = first.get_future(), second_done = second.get_future();
  std::jthread one([&] { first.set_value(clock.SleepFor(seconds(1))); });
  std::jthread two([&] { second.set_value(clock.SleepFor(seconds(2))); });
  ASSERT_TRUE(clock.WaitForSleepers(2));
  clock.Advance(seconds(1));
  EXPECT_TRUE(first_done.get());
  EXPECT_EQ(clock.sleepers(), 1);
  EXPECT_EQ(second_done.wait_for(seconds(0)), std::future_status::timeout);
  EXPECT_TRUE(clock.AdvanceToNextSleeper());
  EXPECT_TRUE(second_done.get());
  EXPECT_EQ(clock.sleepers(), 0);
  EXPECT_FALSE(clock.AdvanceToNextSleeper());
}

TEST(FakeClockTest, StopWakesASleeper) {
  FakeClock clock;
  std::stop_source stop;
  std::promise<bool> result;
  std::jthread sleeper(
      [&] { result.set_value(clock.SleepFor(Duration::max(), stop.get_token())); });
  ASSERT_TRUE(clock.WaitForSleepers(1));
  stop.request_stop();
  EXPECT_FALSE(result.get_future().get());
}

TEST(FakeClockTest, WaitForSleepersGivesUp) {
  FakeClock clock;
  EXPECT_FALSE(clock.WaitForSleepers(1, milliseconds(1)));
}

}  // namespace
}  // namespace hetero::base
