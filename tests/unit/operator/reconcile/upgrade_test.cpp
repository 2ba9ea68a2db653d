// What an operator with other settings, after an upgrade, makes of jobs that run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_cluster.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;
using State = plan::HeadReport::State;

class UpgradeTest : public ::testing::Test {
 protected:
  void Train(const std::string& more_spec = "") {
    cluster_.settings.runtime_image = "runtime:old";
    cluster_.settings.trainer_image = "trainer:old";
    cluster_.Restart();
    cluster_.CreateJob("vit", more_spec);
    ASSERT_TRUE(cluster_.Settle("vit"));
    cluster_.RunPods();
    cluster_.HeadSays("vit", State::kRunning);
    ASSERT_TRUE(cluster_.Settle("vit"));
  }
  void Upgrade() {
    cluster_.settings.runtime_image = "runtime:new";
    cluster_.settings.trainer_image = "trainer:new";
    cluster_.Restart();
  }
  void Lose(const std::string& pod) {
    cluster_.api.Remove("pods", "team/" + pod);
    cluster_.clock.Advance(Expectations::kPatience);
    ASSERT_TRUE(cluster_.Settle("vit"));
  }
  // As the API has it.
  std::string ImageOf(const std::string& pod) const {
    const json object = cluster_.api.Objects("pods").at("team/" + pod);
    return object["spec"]["containers"][0]["image"];
  }
  void TakeStore(const std::string& prefix) {
    cluster_.settings.storage_defaults.resize(1);
    cluster_.settings.storage_defaults[0].prefix = prefix;
  }
  // Of the first entry of spec.storage, as the programs of the job read it.
  std::string StoreOfJob() const {
    const json object = cluster_.api.Objects("configmaps").at("team/vit-config");
    const json job = json::parse(object["data"]["job.json"].get<std::string>());
    return job["spec"]["storage"].at(0)["prefix"];
  }
  void SetSuspend(bool suspend, int generation) {
    cluster_.api.Change("heterotrainingjobs", "team/vit", [&](json& job) {
      job["spec"]["runPolicy"]["suspend"] = suspend;
      job["metadata"]["generation"] = generation;
    });
    ASSERT_TRUE(cluster_.Settle("vit"));
  }

  FakeCluster cluster_;
};

TEST_F(UpgradeTest, ARunningAttemptKeepsItsImagesAndTheNextHasTheNew) {
  Train(R"({"runPolicy": {"maxRestarts": 5}})");
  Upgrade();
  Lose("vit-cpu-1");
  EXPECT_EQ(ImageOf("vit-cpu-1"), "runtime:old");
  Lose("vit-head-0");
  EXPECT_EQ(ImageOf("vit-head-0"), "runtime:old");

  // Its only trainer: the attempt is over.
  cluster_.RunPods();
  cluster_.EndContainer("vit-gpu-0", 1, "no such file");
  ASSERT_TRUE(cluster_.Settle("vit"));
  cluster_.FinishTerminating();
  ASSERT_TRUE(cluster_.Settle("vit"));
  ASSERT_EQ(cluster_.Status("vit").attempt, 2);
  EXPECT_EQ(ImageOf("vit-gpu-0"), "trainer:new");
  EXPECT_EQ(ImageOf("vit-cpu-0"), "runtime:new");
}

// Releases up to 0.1.1 did not keep them.
TEST_F(UpgradeTest, AnAttemptWhoseImagesNobodyKeptHasThoseOfItsPods) {
  Train();
  cluster_.api.Change("heterotrainingjobs", "team/vit",
                      [](json& job) { job["status"].erase("images"); });
  Upgrade();
  Lose("vit-cpu-1");
  EXPECT_EQ(ImageOf("vit-cpu-1"), "runtime:old");
  EXPECT_EQ(cluster_.Status("vit").images,
            (api::AttemptImages{.runtime = "runtime:old", .trainer = "trainer:old"}));
}

TEST_F(UpgradeTest, OtherDefaultsOfStoresChangeNothingOfAJobThatRuns) {
  TakeStore("s3://old");
  Train(R"({"runPolicy": {"maxRestarts": 5}})");
  ASSERT_EQ(StoreOfJob(), "s3://old");
  const std::string trainer = cluster_.Pod("vit-gpu-0").uid;
  TakeStore("s3://new");
  cluster_.Restart();
  ASSERT_TRUE(cluster_.Settle("vit"));
  Lose("vit-cpu-1");
  EXPECT_EQ(StoreOfJob(), "s3://old");
  EXPECT_EQ(cluster_.Pod("vit-gpu-0").uid, trainer);
  EXPECT_EQ(cluster_.Status("vit").attempt, 1);

  // Its only trainer: another attempt of the same configuration.
  cluster_.RunPods();
  cluster_.EndContainer("vit-gpu-0", 1, "no such file");
  ASSERT_TRUE(cluster_.Settle("vit"));
  cluster_.FinishTerminating();
  ASSERT_TRUE(cluster_.Settle("vit"));
  ASSERT_EQ(cluster_.Status("vit").attempt, 2);
  EXPECT_EQ(StoreOfJob(), "s3://old");
}

TEST_F(UpgradeTest, AResumedJobHasTheDefaultsOfStoresOfNow) {
  TakeStore("s3://old");
  Train();
  TakeStore("s3://new");
  cluster_.Restart();
  SetSuspend(true, 2);
  cluster_.HeadSays("vit", State::kStopped);
  ASSERT_TRUE(cluster_.Settle("vit"));
  cluster_.FinishTerminating();
  cluster_.clock.Advance(Expectations::kPatience);
  ASSERT_TRUE(cluster_.Settle("vit"));
  SetSuspend(false, 3);
  ASSERT_EQ(cluster_.Status("vit").attempt, 2);
  EXPECT_EQ(StoreOfJob(), "s3://new");
}

}  // namespace
}  // namespace hetero::reconcile
