#include "runtime/train/checkpoint/checkpoint_lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/fake_clock.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/train/faulty_store.h"

namespace hetero::train {
namespace {

using hetero::testing::ReadFileOrDie;
using hetero::testing::TemporaryFolder;
using std::chrono::seconds;
using ::testing::HasSubstr;

// Time passes when somebody sleeps, at once; `asleep` runs meanwhile.
class LeapingClock : public base::Clock {
 public:
  explicit LeapingClock(std::function<void()> asleep = {}) : asleep_(std::move(asleep)) {}
  base::Instant Now() const override { return base::Instant() + elapsed(); }
  base::WallTime WallNow() const override { return {}; }
  bool SleepFor(base::Duration duration, std::stop_token stop) override {
    if (asleep_) asleep_();
    elapsed_ += duration.count();
    std::this_thread::yield();
    return !stop.stop_requested();
  }
  base::Duration elapsed() const { return base::Duration(elapsed_.load()); }

 private:
  std::function<void()> asleep_;
  std::atomic<int64_t> elapsed_ = 0;
};

// Another job may be about to write it.
TEST_F(CheckpointBucketTest, WhatIsNotWholeStaysWhereNoLockKeepsOthersOut) {
  ASSERT_TRUE(store_->Delete(NameOf(20) + "/DONE").ok());
  const CheckpointBucket unlocked(
      *OpenWritableStore("file://" + folder_.path()), [] { return absl::OkStatus(); },
      /*alone=*/false);
  ASSERT_TRUE(unlocked.Prune(2, "").ok());
  EXPECT_THAT(Steps(), ElementsAre(10, 20));
}

class CheckpointLeaseTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<CheckpointLease>> Take(const std::string& run, base::Clock& clock,
                                                        std::stop_token stop = {}) {
    auto store = std::make_unique<FaultyStore>(folder_.path());
    last_ = store.get();
    return CheckpointLease::Take(
        std::move(store),
        {.run = run, .job = "job-of-" + run, .host = "node-1", .process = "gpu-0, process 1"},
        clock, std::move(stop));
  }
  void WriteTheirs(int beat) {
    const std::string text = absl::StrCat(
        R"({"run":"other","job":"theirs","host":"node-7","process":"gpu-0, process 12","beat":)",
        beat, "}");
    ASSERT_TRUE(FaultyStore(folder_.path()).Write(".lock", text).ok());
    // Its version is the time of its last change, which few clocks tell apart so soon.
    std::filesystem::last_write_time(folder_ / ".lock",
                                     std::filesystem::file_time_type(seconds(beat)));
  }
  std::string Lock() const { return ReadFileOrDie(folder_ / ".lock"); }
  // A renewal happens, whatever comes of it.
  static void Beat(base::FakeClock& clock) {
    ASSERT_TRUE(clock.WaitForSleepers(1));
    clock.Advance(seconds(5));
    ASSERT_TRUE(clock.WaitForSleepers(1));
  }

  TemporaryFolder folder_;
  FaultyStore* last_ = nullptr;  // of the last Take()
};

TEST_F(CheckpointLeaseTest, AnOwnerThatBeatsIsNamed) {
  int beat = 1;
  WriteTheirs(beat);
  LeapingClock clock([&] { WriteTheirs(++beat); });
  const absl::Status refused = Take("a", clock).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("theirs (gpu-0, process 12 on node-7)"));
  EXPECT_GE(clock.elapsed(), seconds(10));
}

TEST_F(CheckpointLeaseTest, ASilentOwnerIsFollowedWhenItsLeaseIsOver) {
  WriteTheirs(1);
  base::Duration waited{};
  LeapingClock clock;
  const auto lease = Take("a", clock);
  waited = clock.elapsed();
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_GE(waited, CheckpointLease::kLease);
  EXPECT_THAT(Lock(), HasSubstr("job-of-a"));
}

TEST_F(CheckpointLeaseTest, AProcessOfTheSameRunNeedNotWait) {
  WriteTheirs(1);
  std::stop_source stopped;
  stopped.request_stop();  // of a wait
  base::FakeClock clock;
  const auto lease = Take("other", clock, stopped.get_token());
  EXPECT_TRUE(lease.ok()) << lease.status();
}

TEST_F(CheckpointLeaseTest, IsFreeAfterItsOwner) {
  std::stop_source stopped;
  stopped.request_stop();
  base::FakeClock clock;
  for (const char* run : {"a", "b"}) {
    const auto lease = Take(run, clock, stopped.get_token());
    ASSERT_TRUE(lease.ok()) << lease.status();
    EXPECT_THAT(Lock(), HasSubstr(absl::StrCat("job-of-", run)));
  }
  EXPECT_THAT(Lock(), HasSubstr("released"));
}

TEST_F(CheckpointLeaseTest, WhatADeadProcessOfThisMachineHeldIsTakenAtOnce) {
  const pid_t child = fork();
  if (child == 0) {
    base::FakeClock clock;
    const auto lease = Take("a", clock);
    _exit(lease.ok() ? 0 : 1);
  }
  std::stop_source stopped;
  stopped.request_stop();
  base::FakeClock clock;
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_THAT(Lock(), HasSubstr("job-of-a"));
  const auto lease = Take("b", clock, stopped.get_token());
  EXPECT_TRUE(lease.ok()) << lease.status();
}

TEST_F(CheckpointLeaseTest, AStopEndsTheWait) {
  WriteTheirs(1);
  std::stop_source stopped;
  stopped.request_stop();
  LeapingClock clock;
  EXPECT_TRUE(absl::IsCancelled(Take("a", clock, stopped.get_token()).status()));
}

TEST_F(CheckpointLeaseTest, WhoLosesItIsToldByWhomAndLeavesIt) {
  base::FakeClock clock;
  {
    const auto lease = Take("a", clock);
    ASSERT_TRUE(lease.ok()) << lease.status();
    EXPECT_TRUE((*lease)->Check().ok());
    WriteTheirs(1);
    Beat(clock);
    EXPECT_THAT((*lease)->Check().message(),
                HasSubstr("job theirs (gpu-0, process 12 on node-7) has taken"));
  }
  EXPECT_THAT(Lock(), HasSubstr("theirs"));
}

TEST_F(CheckpointLeaseTest, OneThatWasRemovedIsWrittenAgain) {
  base::FakeClock clock;
  const auto lease = Take("a", clock);
  ASSERT_TRUE(lease.ok()) << lease.status();
  ASSERT_TRUE(FaultyStore(folder_.path()).Delete(".lock").ok());
  Beat(clock);
  EXPECT_TRUE((*lease)->Check().ok());
  EXPECT_THAT(Lock(), HasSubstr("job-of-a"));
}

TEST_F(CheckpointLeaseTest, AfterASilenceItMayBeAnothersUntilItIsWrittenAgain) {
  base::FakeClock clock;
  const auto lease = Take("a", clock);
  ASSERT_TRUE(lease.ok()) << lease.status();
  last_->unreachable = true;
  for (int beat = 0; beat < 5; ++beat) {
    EXPECT_EQ((*lease)->Check().ok(), beat < 4) << beat;
    Beat(clock);
  }
  EXPECT_THAT((*lease)->Check().message(), HasSubstr("could not be written for 25 s"));
  last_->unreachable = false;
  Beat(clock);
  EXPECT_TRUE((*lease)->Check().ok());
}

TEST_F(CheckpointLeaseTest, AStoreThatWritesInSpiteOfConditionsIsRefused) {
  auto store = std::make_unique<FaultyStore>(folder_.path());
  store->knows_conditions = false;
  base::FakeClock clock;
  const absl::Status refused =
      CheckpointLease::Take(std::move(store), {.run = "a"}, clock, {}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("If-None-Match"));
  EXPECT_THAT(refused.message(), HasSubstr("spec.training.checkpoint.lock: None"));
}

}  // namespace
}  // namespace hetero::train
