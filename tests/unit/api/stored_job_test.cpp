// Objects that an API server accepted by another version's definition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "api/manifest.h"
#include "tests/unit/api/test_manifest.h"

namespace hetero::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

StoredJob StoredWith(const std::string& from, const std::string& to) {
  const std::string text = absl::StrReplaceAll(kSmallest, {{from, to}});
  EXPECT_NE(text, kSmallest) << "nothing replaced: " << from;
  return ReadStoredJob(text);
}

TEST(StoredJobTest, FieldsOfANewerVersionAreNoErrorHere) {
  const StoredJob stored =
      StoredWith("batchSizePerWorker: 64", "batchSizePerWorker: 64\n    ema: {decay: 0.9}");
  EXPECT_THAT(stored.errors, IsEmpty());
  EXPECT_THAT(stored.unknown_fields, ElementsAre("spec.training.ema"));
  EXPECT_EQ(stored.job.spec.training.batch_size_per_worker, 64);
  EXPECT_TRUE(stored.pods_known);
}

TEST(StoredJobTest, TheyStayErrorsForPeople) {
  const std::string text = absl::StrReplaceAll(
      kSmallest, {{"batchSizePerWorker: 64", "batchSizePerWorker: 64\n    ema: {decay: 0.9}"}});
  ASSERT_EQ(ParseManifest(text).errors.size(), 1u);
  EXPECT_EQ(ParseManifest(text).errors[0].path, "spec.training.ema");
}

TEST(StoredJobTest, UnknownFieldsAreFoundAtEveryDepth) {
  const StoredJob stored =
      StoredWith("{name: cpu,  type: CPUWorker, replicas: 2}",
                 "{name: cpu, type: CPUWorker, replicas: 2, spread: {zones: 2}}");
  EXPECT_THAT(stored.unknown_fields, ElementsAre("spec.roles[1].spread"));
  EXPECT_THAT(stored.errors, IsEmpty());
  EXPECT_EQ(stored.job.spec.roles.at(1).replicas, 2);
}

TEST(StoredJobTest, AValueOfANewerVersionIsAnErrorThatLeavesThePodsKnown) {
  const StoredJob stored = StoredWith("optimizer: {name: SGD", "optimizer: {name: Lion");
  ASSERT_EQ(stored.errors.size(), 1u);
  EXPECT_EQ(stored.errors[0].path, "spec.training.optimizer.name");
  EXPECT_TRUE(stored.pods_known);
  EXPECT_EQ(stored.job.spec.roles.size(), 3u);
}

TEST(StoredJobTest, RolesThatCannotBeReadLeaveThePodsUnknown) {
  for (const char* role : {"{name: gpu,  type: TPUWorker, replicas: 1}",
                           "{name: gpu,  type: GPUWorker, restartScope: Rank}", "7"}) {
    const StoredJob stored = StoredWith("{name: gpu,  type: GPUWorker, replicas: 1}", role);
    EXPECT_FALSE(stored.pods_known) << role;
  }
  EXPECT_FALSE(ReadStoredJob("spec: 7").pods_known);
  EXPECT_FALSE(ReadStoredJob("[").pods_known);
}

TEST(StoredJobTest, ARuleThatIsBrokenLeavesThePodsKnown) {
  const StoredJob stored = StoredWith("type: Head", "type: Head, replicas: 2");
  ASSERT_EQ(stored.errors.size(), 1u);
  EXPECT_THAT(stored.errors[0].path, HasSubstr("spec.roles[0].replicas"));
  EXPECT_TRUE(stored.pods_known);
}

}  // namespace
}  // namespace hetero::api
