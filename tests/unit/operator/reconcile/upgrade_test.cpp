// What an operator with other images, after an upgrade, makes of jobs that run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_cluster.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;
using State = plan::HeadReport::State;

class UpgradeTest : public testing::Test {
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

}  // namespace
}  // namespace hetero::reconcile
