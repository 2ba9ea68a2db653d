#include "runtime/train/checkpoint/checkpoint_bucket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/fake_clock.h"
#include "runtime/storage/open_store.h"
#include "runtime/train/checkpoint/checkpoint_lease.h"
#include "tests/support/temporary_folder.h"

namespace hetero::train {
namespace {

using hetero::testing::TemporaryFolder;
using std::chrono::seconds;
using storage::Object;
using storage::OpenWritableStore;
using storage::WritableStore;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A folder as a store, whose faults a test asks for.
class FaultyStore : public WritableStore {
 public:
  explicit FaultyStore(const std::string& folder)
      : store_(*OpenWritableStore("file://" + folder)) {}

  std::atomic<bool> unreachable = false;
  bool knows_conditions = true;
  absl::Status listed;

  const std::string& uri() const override { return store_->uri(); }
  absl::StatusOr<std::vector<Object>> List(std::string_view prefix) const override {
    if (unreachable) return Unreachable();
    if (!listed.ok()) return listed;
    return store_->List(prefix);
  }
  absl::StatusOr<Object> Head(std::string_view name) const override {
    if (unreachable) return Unreachable();
    return store_->Head(name);
  }
  absl::Status Read(const Object& object, int64_t offset, absl::Span<uint8_t> out) const override {
    if (unreachable) return Unreachable();
    return store_->Read(object, offset, out);
  }
  absl::StatusOr<std::unique_ptr<storage::ObjectWriter>> Create(std::string_view name) override {
    if (unreachable) return Unreachable();
    return store_->Create(name);
  }
  absl::StatusOr<Object> WriteIfAbsent(std::string_view name, std::string_view bytes) override {
    if (unreachable) return Unreachable();
    return knows_conditions ? store_->WriteIfAbsent(name, bytes) : Write(name, bytes);
  }
  absl::StatusOr<Object> WriteIfMatch(const Object& old, std::string_view bytes) override {
    if (unreachable) return Unreachable();
    return knows_conditions ? store_->WriteIfMatch(old, bytes) : Write(old.name, bytes);
  }
  absl::Status Delete(std::string_view name) override {
    if (unreachable) return Unreachable();
    return store_->Delete(name);
  }

  absl::StatusOr<Object> Write(std::string_view name, std::string_view bytes) {
    auto writer = store_->Create(name);
    if (!writer.ok()) return writer.status();
    (*writer)->Append({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}).IgnoreError();
    return (*writer)->Close();
  }

 private:
  static absl::Status Unreachable() { return absl::UnavailableError("no route to the store"); }

  const std::unique_ptr<WritableStore> store_;
};

CheckpointManifest OfStep(int64_t step, const std::string& run = "run-1") {
  CheckpointManifest manifest;
  manifest.job = "small";
  manifest.run = run;
  manifest.created_unix_ns = 1000 + step;
  manifest.model = "mlp";
  manifest.classes = 10;
  manifest.input = {8, 8, 3};
  manifest.optimizer = "SGD";
  manifest.samples = 200;
  manifest.step = step;
  return manifest;
}

CheckpointFiles FilesOfStep(int64_t step) {
  return {{"model.safetensors", absl::StrCat("the model of step ", step)},
          {"optimizer.safetensors", std::string(1000, static_cast<char>('a' + step % 26))}};
}

class CheckpointBucketTest : public ::testing::Test {
 protected:
  CheckpointBucketTest() {
    for (const int64_t step : {10, 20}) {
      EXPECT_TRUE(bucket_.Write(OfStep(step), FilesOfStep(step)).ok());
    }
  }
  int64_t LoadedStep(const std::string& run = "") const {
    const auto loaded = bucket_.LoadNewest(OfStep(0), run);
    return loaded.ok() ? loaded->manifest.step : -1;
  }
  // Of that step, whatever its number.
  std::string NameOf(int64_t step) const {
    for (const std::string& name : AllNames()) {
      if (StepOfCheckpoint(name) == step) return name;
    }
    return "none";
  }
  std::vector<int64_t> Steps() const {
    std::vector<int64_t> steps;
    for (const std::string& name : AllNames()) steps.push_back(StepOfCheckpoint(name));
    return steps;
  }
  // Of the checkpoints of which anything is there.
  std::vector<std::string> AllNames() const {
    std::vector<std::string> names;
    const absl::StatusOr<std::vector<Object>> objects = store_->List("");
    for (const Object& object : *objects) {
      const std::string name = object.name.substr(0, object.name.find('/'));
      if (names.empty() || names.back() != name) names.push_back(name);
    }
    return names;
  }

  TemporaryFolder folder_;
  FaultyStore* const store_ = new FaultyStore(folder_.path());  // the bucket's
  absl::Status may_write_;
  CheckpointBucket bucket_{std::unique_ptr<WritableStore>(store_), [this] { return may_write_; },
                           /*alone=*/true};
};

TEST_F(CheckpointBucketTest, LoadsTheNewestWithItsFiles) {
  const auto loaded = bucket_.LoadNewest(OfStep(0), "");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->manifest.step, 20);
  EXPECT_EQ(loaded->folder, absl::StrCat("file://", folder_.path(), "/", NameOf(20)));
  for (const auto& [name, bytes] : FilesOfStep(20)) EXPECT_EQ(loaded->files.at(name), bytes);
}

TEST_F(CheckpointBucketTest, WhatIsNotWholeIsPassedOverAndGoesWithTheOldOnes) {
  for (const char* file : {"DONE", "manifest.json"}) {
    ASSERT_TRUE(store_->Delete(absl::StrCat(NameOf(20), "/", file)).ok());
    EXPECT_EQ(LoadedStep(), 10) << file;
    ASSERT_TRUE(bucket_.Prune(2, "").ok());
    EXPECT_THAT(Steps(), ElementsAre(10));
    ASSERT_TRUE(bucket_.Write(OfStep(20), FilesOfStep(20)).ok());
    EXPECT_EQ(LoadedStep(), 20);
  }
  const std::string file = NameOf(20) + "/optimizer.safetensors";
  ASSERT_TRUE(store_->Write(file, std::string(1000, 'x')).ok());
  EXPECT_EQ(LoadedStep(), 10) << "its CRC is another";
  ASSERT_TRUE(store_->Delete(file).ok());
  EXPECT_EQ(LoadedStep(), 10);
}

TEST_F(CheckpointBucketTest, WhereNoneIsWholeAJobBeginsAnew) {
  for (const std::string& name : AllNames()) ASSERT_TRUE(store_->Delete(name + "/DONE").ok());
  EXPECT_TRUE(absl::IsNotFound(bucket_.LoadNewest(OfStep(0), "").status()));
}

TEST_F(CheckpointBucketTest, KeepsTheNewest) {
  const auto written = bucket_.Write(OfStep(30), FilesOfStep(30));
  ASSERT_TRUE(written.ok()) << written.status();
  ASSERT_TRUE(bucket_.Prune(2, "", *written).ok());
  EXPECT_THAT(Steps(), ElementsAre(20, 30));
}

TEST_F(CheckpointBucketTest, OfTheSameStepTheLaterOneTakesThePlaceOfItsOwnRunsAlone) {
  const std::string first = NameOf(20);
  ASSERT_TRUE(bucket_.Write(OfStep(20), FilesOfStep(21)).ok());
  EXPECT_THAT(Steps(), ElementsAre(10, 20));
  EXPECT_NE(NameOf(20), first) << "nothing is written over";
  EXPECT_EQ(bucket_.LoadNewest(OfStep(0), "")->files.at("model.safetensors"),
            FilesOfStep(21)[0].second);
  ASSERT_TRUE(bucket_.Write(OfStep(20, "run-2"), FilesOfStep(22), /*beside_others=*/true).ok());
  EXPECT_THAT(Steps(), ElementsAre(10, 20, 20));
  EXPECT_EQ(bucket_.LoadNewest(OfStep(0), "run-1")->files.at("model.safetensors"),
            FilesOfStep(21)[0].second);
}

TEST_F(CheckpointBucketTest, WhoMayNotWriteLeavesNothingAndRemovesNothing) {
  may_write_ = absl::AbortedError("another has it");
  EXPECT_EQ(bucket_.Write(OfStep(30), FilesOfStep(30)).status(), may_write_);
  EXPECT_THAT(bucket_.Prune(1, "").message(), HasSubstr("another has it"));
  EXPECT_THAT(Steps(), ElementsAre(10, 20));
  EXPECT_EQ(LoadedStep(), 20) << "it may read";
}

// It would have been taken for damaged, and removed by the next that was written.
TEST_F(CheckpointBucketTest, AStoreThatCannotBeReachedHasNotLostItsCheckpoints) {
  store_->unreachable = true;
  EXPECT_TRUE(absl::IsUnavailable(bucket_.LoadNewest(OfStep(0), "").status()));
  EXPECT_TRUE(absl::IsUnavailable(bucket_.Prune(1, "")));
  store_->unreachable = false;
  EXPECT_EQ(LoadedStep(), 20);
  store_->listed = absl::NotFoundError("HTTP 404 of a gateway");
  EXPECT_TRUE(absl::IsUnavailable(bucket_.LoadNewest(OfStep(0), "").status())) << "no new start";
}

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
  }
  std::string Lock() const { return testing::ReadFileOrDie(folder_ / ".lock"); }
  // Until the renewal that the clock's time is for has happened.
  static absl::Status CheckUntil(const CheckpointLease& lease, bool ok) {
    const auto end = std::chrono::steady_clock::now() + seconds(20);
    while (lease.Check().ok() != ok && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return lease.Check();
  }

  TemporaryFolder folder_;
  FaultyStore* last_ = nullptr;  // of the last Take()
};

TEST_F(CheckpointLeaseTest, AnOwnerThatBeatsIsNamed) {
  int beat = 1;
  WriteTheirs(beat);
  LeapingClock clock([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // for another time in its version
    WriteTheirs(++beat);
  });
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
    ASSERT_TRUE(clock.WaitForSleepers(1));
    clock.Advance(seconds(5));
    EXPECT_THAT(CheckUntil(**lease, false).message(),
                HasSubstr("job theirs (gpu-0, process 12 on node-7) has taken"));
  }
  EXPECT_THAT(Lock(), HasSubstr("theirs"));
}

TEST_F(CheckpointLeaseTest, OneThatWasRemovedIsWrittenAgain) {
  base::FakeClock clock;
  const auto lease = Take("a", clock);
  ASSERT_TRUE(lease.ok()) << lease.status();
  ASSERT_TRUE(FaultyStore(folder_.path()).Delete(".lock").ok());
  ASSERT_TRUE(clock.WaitForSleepers(1));
  clock.Advance(seconds(5));
  ASSERT_TRUE(clock.WaitForSleepers(1));
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
    ASSERT_TRUE(clock.WaitForSleepers(1));
    clock.Advance(seconds(5));
  }
  EXPECT_THAT((*lease)->Check().message(), HasSubstr("could not be written for 25 s"));
  last_->unreachable = false;
  ASSERT_TRUE(clock.WaitForSleepers(1));
  clock.Advance(seconds(5));
  EXPECT_TRUE(CheckUntil(**lease, true).ok());
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
