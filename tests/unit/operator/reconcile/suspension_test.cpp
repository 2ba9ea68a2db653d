// A suspension whose stop outlives the operator, and a head that cannot be reached.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_cluster.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using State = plan::HeadReport::State;

class Suspension : public ::testing::Test {
 protected:
  void Train() {
    cluster_.CreateJob("vit");
    ASSERT_TRUE(cluster_.Settle("vit"));
    cluster_.RunPods();
    ASSERT_TRUE(cluster_.Settle("vit"));
    cluster_.HeadSays("vit", State::kRunning);
    ASSERT_TRUE(cluster_.Settle("vit"));
  }
  void Suspend() {
    cluster_.api.Change("heterotrainingjobs", "team/vit", [](json& job) {
      job["spec"]["runPolicy"]["suspend"] = true;
      job["metadata"]["generation"] = 2;
    });
    ASSERT_TRUE(cluster_.Settle("vit"));
  }
  bool PodsAreDeleted() const {
    return !cluster_.api.Objects("pods").contains("team/vit-gpu-0") ||
           cluster_.Pod("vit-gpu-0").deletion_time.has_value();
  }

  FakeCluster cluster_;
};

TEST_F(Suspension, TheNextOperatorWaitsForTheCheckpointToo) {
  Train();
  Suspend();
  EXPECT_EQ(cluster_.heads.stops.size(), 1u);
  cluster_.heads.reports.clear();  // of the process
  cluster_.Restart();
  cluster_.clock.Advance(seconds(10));
  ASSERT_TRUE(cluster_.Settle("vit"));
  EXPECT_TRUE(cluster_.heads.followed.contains("team/vit"));
  EXPECT_FALSE(PodsAreDeleted());
  cluster_.HeadSays("vit", State::kRunning);
  ASSERT_TRUE(cluster_.Settle("vit"));
  EXPECT_EQ(cluster_.heads.stops.size(), 2u);
  EXPECT_FALSE(PodsAreDeleted());
  cluster_.HeadSays("vit", State::kStopped);
  ASSERT_TRUE(cluster_.Settle("vit"));
  EXPECT_TRUE(PodsAreDeleted());
}

// However many operators come and go: each of them finds in the status when the stop began.
TEST_F(Suspension, TheGraceIsNotBegunAnewByTheNextOperator) {
  Train();
  cluster_.clock.Advance(seconds(100));
  Suspend();
  cluster_.heads.reports.clear();
  for (int i = 0; i < 2; ++i) {
    cluster_.Restart();
    cluster_.clock.Advance(seconds(25));
    ASSERT_TRUE(cluster_.Settle("vit"));
    EXPECT_FALSE(PodsAreDeleted());
  }
  cluster_.Restart();
  cluster_.clock.Advance(seconds(10));
  ASSERT_TRUE(cluster_.Settle("vit"));
  EXPECT_TRUE(PodsAreDeleted());
}

}  // namespace
}  // namespace hetero::reconcile
