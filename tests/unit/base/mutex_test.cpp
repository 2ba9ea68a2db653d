#include "base/mutex.h"

#include <gtest/gtest.h>

#include <thread>

namespace hetero::base {
namespace {

struct Flag {
  Mutex mutex;
  CondVar changed;
  bool set ABSL_GUARDED_BY(mutex) = false;

  void Set() {
    const MutexLock lock(mutex);
    set = true;
    changed.NotifyAll();
  }
  bool WaitSet(const std::stop_token& stop) {
    const MutexLock lock(mutex);
    return changed.Wait(mutex, stop, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return set; });
  }
  bool WaitSetUntil(Instant deadline, const std::stop_token& stop = {}) {
    const MutexLock lock(mutex);
    return changed.WaitUntil(mutex, deadline, stop,
                             [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return set; });
  }
};

constexpr auto kLong = std::chrono::minutes(5);

TEST(Mutex, LockCanBeGivenUpAndTakenAgain) {
  Mutex mutex;
  MutexLock lock(mutex);
  lock.Unlock();
  std::jthread([&] { const MutexLock other(mutex); }).join();
  lock.Lock();
}

TEST(CondVar, WaitEndsWhenTheConditionHolds) {
  Flag flag;
  std::jthread setter([&] { flag.Set(); });
  EXPECT_TRUE(flag.WaitSet({}));
}

TEST(CondVar, WaitEndsWithTheStopToken) {
  Flag flag;
  std::stop_source source;
  std::jthread stopper([&] { source.request_stop(); });
  EXPECT_FALSE(flag.WaitSet(source.get_token()));
}

TEST(CondVar, StopRequestedBeforeTheWaitEndsIt) {
  Flag flag;
  std::stop_source source;
  source.request_stop();
  EXPECT_FALSE(flag.WaitSet(source.get_token()));
  EXPECT_FALSE(flag.WaitSetUntil(Instant::clock::now() + kLong, source.get_token()));
}

TEST(CondVar, ConditionCountsMoreThanStop) {
  Flag flag;
  flag.Set();
  std::stop_source source;
  source.request_stop();
  EXPECT_TRUE(flag.WaitSet(source.get_token()));
  EXPECT_TRUE(flag.WaitSetUntil(Instant::clock::now(), source.get_token()));
}

TEST(CondVar, DeadlineEndsTheWait) {
  Flag flag;
  EXPECT_FALSE(flag.WaitSetUntil(Instant::clock::now()));
  EXPECT_FALSE(flag.WaitSetUntil(Instant::clock::now() + std::chrono::milliseconds(1)));
}

TEST(CondVar, NotificationEndsAWaitWithADeadline) {
  Flag flag;
  std::jthread setter([&] { flag.Set(); });
  EXPECT_TRUE(flag.WaitSetUntil(Instant::clock::now() + kLong));
}

// Two threads hand a number to and fro: a lost notification would hang them.
TEST(CondVar, NoNotificationIsLost) {
  Mutex mutex;
  CondVar changed;
  int turn = 0;
  const auto play = [&](int me) {
    for (int i = 0; i < 2'000; ++i) {
      const MutexLock lock(mutex);
      changed.Wait(mutex, [&] { return turn % 2 == me; });
      ++turn;
      changed.NotifyAll();
    }
  };
  std::jthread other([&] { play(1); });
  play(0);
  other.join();
  EXPECT_EQ(turn, 4'000);
}

}  // namespace
}  // namespace hetero::base
