#include "runtime/train/stop_watcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>

#include "base/fake_clock.h"

namespace hetero::train {
namespace {

using std::chrono::seconds;

class StopWatcherTest : public ::testing::Test {
 protected:
  void Watch(base::Duration grace, LastResort last_resort = {}) {
    watcher_.emplace(
        stop_.get_token(), grace, clock_, [this] { ++cuts_; }, std::move(last_resort));
  }
  void Stop() { stop_.request_stop(); }
  // Once the watcher's thread sleeps, whatever came before its sleep has happened.
  void Pass(base::Duration duration) {
    ASSERT_TRUE(clock_.WaitForSleepers(1, seconds(60)));
    clock_.Advance(duration);
  }
  void ExpectAsleepAfter(int cuts) {
    ASSERT_TRUE(clock_.WaitForSleepers(1, seconds(60)));
    EXPECT_EQ(cuts_, cuts);
  }

  base::FakeClock clock_;
  std::stop_source stop_;
  std::atomic<int> cuts_ = 0;
  std::optional<StopWatcher> watcher_;
};

TEST_F(StopWatcherTest, CutsAfterTheGraceAndAgainWhileTheOwnerStays) {
  Watch(seconds(1));
  Stop();
  ExpectAsleepAfter(0);
  Pass(seconds(1));
  ExpectAsleepAfter(1);
  Pass(seconds(5));
  ExpectAsleepAfter(2);
  Pass(seconds(5));
  ExpectAsleepAfter(3);
  watcher_.reset();
  EXPECT_EQ(cuts_, 3);
}

TEST_F(StopWatcherTest, LeavesAnOwnerAloneThatGoesInTime) {
  Watch(seconds(1));
  Stop();
  ExpectAsleepAfter(0);
  watcher_.reset();
  EXPECT_EQ(cuts_, 0);
}

TEST_F(StopWatcherTest, GivesUpOnceWhenItsPatienceIsOver) {
  std::atomic<int> given_up = 0;
  Watch(seconds(1), {.patience = seconds(10), .give_up = [&] { ++given_up; }});
  Stop();
  Pass(seconds(1));
  ExpectAsleepAfter(1);
  Pass(seconds(5));
  ExpectAsleepAfter(2);
  EXPECT_EQ(given_up, 0);
  Pass(seconds(5));
  ExpectAsleepAfter(3);
  EXPECT_EQ(given_up, 1);
  Pass(seconds(5));
  ExpectAsleepAfter(4);
  EXPECT_EQ(given_up, 1);
  watcher_.reset();
}

TEST_F(StopWatcherTest, WithoutAStopNothingIsCut) {
  Watch({});
  watcher_.reset();
  EXPECT_EQ(cuts_, 0);
}

}  // namespace
}  // namespace hetero::train
