#include "runtime/train/checkpoint/checkpoint_bucket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/storage/open_store.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/train/faulty_store.h"

namespace hetero::train {
namespace {

using hetero::testing::TemporaryFolder;
using storage::Object;
using storage::OpenWritableStore;
using storage::WritableStore;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

}  // namespace
}  // namespace hetero::train
