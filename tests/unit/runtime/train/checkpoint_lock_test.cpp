#include "runtime/train/checkpoint/checkpoint_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/temporary_folder.h"

namespace hetero::train {
namespace {

using hetero::testing::ReadFileOrDie;
using hetero::testing::TemporaryFolder;
using hetero::testing::WriteFile;
using ::testing::HasSubstr;

// Time passes when somebody sleeps, at once; `asleep` runs meanwhile.
class SkippingClock : public base::Clock {
 public:
  explicit SkippingClock(std::function<void()> asleep = {}) : asleep_(std::move(asleep)) {}
  base::Instant Now() const override { return base::Instant() + elapsed_; }
  base::WallTime WallNow() const override { return {}; }
  bool SleepFor(base::Duration duration, std::stop_token stop) override {
    if (asleep_) asleep_();
    elapsed_ += duration;
    return !stop.stop_requested();
  }

 private:
  std::function<void()> asleep_;
  base::Duration elapsed_{};
};

CheckpointLock::Owner MakeOwner(const std::string& run, const std::string& host) {
  return {.run = run, .job = "job-of-" + run, .host = host, .process = "gpu-0, process 4711"};
}

// As a process on another machine leaves it, where this kernel's locks do not reach.
std::string LockText(int beat) {
  return R"({"run":"other","job":"theirs","host":"node-7","process":"gpu-0, process 12","beat":)" +
         std::to_string(beat) + "}\n";
}

TEST(CheckpointLockTest, ASecondRunIsRefusedAndTheFirstNamed) {
  TemporaryFolder folder;
  const auto first =
      CheckpointLock::Take(folder.path(), MakeOwner("a", ThisHost()), base::Clock::Real(), {});
  ASSERT_TRUE(first.ok()) << first.status();
  SkippingClock clock;
  const absl::Status second =
      CheckpointLock::Take(folder.path(), MakeOwner("b", ThisHost()), clock, {}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(second)) << second;
  EXPECT_THAT(second.message(), HasSubstr("job-of-a (gpu-0, process 4711 on " + ThisHost() + ")"));
  EXPECT_GE(clock.Now() - base::Instant(), std::chrono::seconds(10));
}

// A killed process keeps the kernel's lock until its last thread has ended, which takes a full
// machine a while.
TEST(CheckpointLockTest, AnOwnerThatIsDyingIsWaitedFor) {
  TemporaryFolder folder;
  auto first =
      CheckpointLock::Take(folder.path(), MakeOwner("a", ThisHost()), base::Clock::Real(), {});
  ASSERT_TRUE(first.ok()) << first.status();
  SkippingClock* running = nullptr;
  SkippingClock clock([&] {
    if (running->Now() - base::Instant() > std::chrono::seconds(20)) first->reset();
  });
  running = &clock;
  const auto second = CheckpointLock::Take(folder.path(), MakeOwner("b", ThisHost()), clock, {});
  EXPECT_TRUE(second.ok()) << second.status();
}

TEST(CheckpointLockTest, IsFreeAfterItsOwner) {
  TemporaryFolder folder;
  for (const char* run : {"a", "b"}) {
    const auto lock =
        CheckpointLock::Take(folder.path(), MakeOwner(run, ThisHost()), base::Clock::Real(), {});
    EXPECT_TRUE(lock.ok()) << lock.status();
  }
  EXPECT_EQ(ReadFileOrDie(folder / ".lock"), "");
}

TEST(CheckpointLockTest, WhatAKilledProcessOfThisMachineHeldIsTakenAtOnce) {
  TemporaryFolder folder;
  WriteFile(folder / ".lock", LockText(1));
  const auto lock =
      CheckpointLock::Take(folder.path(), MakeOwner("a", "node-7"), base::Clock::Real(), {});
  EXPECT_TRUE(lock.ok()) << lock.status();
}

TEST(CheckpointLockTest, ARestartedProcessOfTheSameRunNeedNotWait) {
  TemporaryFolder folder;
  WriteFile(folder / ".lock", LockText(1));
  const auto lock =
      CheckpointLock::Take(folder.path(), MakeOwner("other", "node-8"), base::Clock::Real(), {});
  EXPECT_TRUE(lock.ok()) << lock.status();
}

TEST(CheckpointLockTest, AnOwnerElsewhereThatBeatsIsAlive) {
  TemporaryFolder folder;
  int beat = 1;
  WriteFile(folder / ".lock", LockText(beat));
  SkippingClock clock([&] { WriteFile(folder / ".lock", LockText(++beat)); });
  const absl::Status refused =
      CheckpointLock::Take(folder.path(), MakeOwner("a", "node-8"), clock, {}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("theirs (gpu-0, process 12 on node-7)"));
}

TEST(CheckpointLockTest, AStopEndsTheWait) {
  TemporaryFolder folder;
  WriteFile(folder / ".lock", LockText(1));
  std::stop_source stop;
  stop.request_stop();
  const auto lock = CheckpointLock::Take(folder.path(), MakeOwner("a", "node-8"),
                                         base::Clock::Real(), stop.get_token());
  EXPECT_TRUE(absl::IsCancelled(lock.status())) << lock.status();
}

}  // namespace
}  // namespace hetero::train
