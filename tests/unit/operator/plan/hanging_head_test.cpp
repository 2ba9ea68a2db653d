// A head whose process lives and does nothing: two witnesses, or it stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr char kHead[] = "vit-head-0";

class HangingHead : public ::testing::Test {
 protected:
  HangingHead() {
    cluster.RunJob();
    cluster.report().silent_since = cluster.now;
    cluster.Settle();
  }
  // The stream breaks, or is merely silent.
  void FallSilent() {
    cluster.report().connected = false;
    cluster.report().silent_since = cluster.now;
  }
  void BecomeUnready() {
    cluster.Change(kHead, [this](ObservedPod& pod) {
      pod.ready = false;
      pod.unready_since = cluster.now;
    });
  }
  bool Deleted() const {
    return !cluster.Has(kHead) || cluster.Pod(kHead).deletion_time.has_value();
  }

  ModelCluster cluster{Job()};
};

TEST_F(HangingHead, AFrozenHeadIsReplacedAtTheCostOfOne) {
  FallSilent();
  cluster.Advance(seconds(12));
  BecomeUnready();
  const Plan waiting = cluster.Pass();
  EXPECT_EQ(cluster.status().restarts, 0) << "either may change its mind";
  ASSERT_TRUE(waiting.requeue_after.has_value());
  EXPECT_LE(*waiting.requeue_after, seconds(15));
  cluster.Advance(seconds(15));
  const std::string uid = cluster.Pod(kHead).uid;
  cluster.Pass();
  EXPECT_EQ(cluster.status().restarts, 1);
  EXPECT_EQ(cluster.status().first_failure->pod, kHead);
  EXPECT_EQ(cluster.status().first_failure->reason, "Lost");
  EXPECT_THAT(cluster.status().first_failure->message, HasSubstr("the head hangs"));
  const Plan plan = cluster.Pass();
  ASSERT_FALSE(plan.stages.empty());
  EXPECT_EQ(std::get<DeleteChild>(plan.stages[0][0]).grace_seconds, 5) << "it will not answer";
  cluster.Vanish(kHead);
  cluster.Settle();
  EXPECT_NE(cluster.Pod(kHead).uid, uid);
  EXPECT_EQ(cluster.status().attempt, 1) << "the trainers go on";
  EXPECT_EQ(cluster.status().restarts, 1);
}

TEST_F(HangingHead, APartitionBetweenOperatorAndHeadAloneCostsNothing) {
  FallSilent();
  cluster.Advance(seconds(300));
  cluster.Settle();
  EXPECT_EQ(cluster.status().restarts, 0);
  EXPECT_FALSE(Deleted());
}

TEST_F(HangingHead, ABusyHeadThatReportsIsKeptThoughItsProbesFail) {
  BecomeUnready();
  for (int i = 0; i < 100; ++i) {
    cluster.Advance(seconds(3));
    cluster.report().silent_since = cluster.now;
    cluster.Settle();
  }
  EXPECT_EQ(cluster.status().restarts, 0);
  EXPECT_FALSE(Deleted());
}

TEST_F(HangingHead, ANodeThatIsSilentItselfIsNoWitness) {
  FallSilent();
  BecomeUnready();
  cluster.Change(kHead, [](ObservedPod& pod) { pod.node = "n1"; });
  cluster.nodes["n1"] = {.name = "n1", .ready = false, .since = cluster.now};
  cluster.Advance(seconds(30));
  cluster.Settle();
  EXPECT_EQ(cluster.status().restarts, 0);
}

// A new operator has heard nothing yet: the head must fail to answer it, too.
TEST_F(HangingHead, AnOperatorThatHasJustComeAsksFirst) {
  BecomeUnready();
  cluster.Advance(seconds(300));
  cluster.report() = HeadReport{.silent_since = cluster.now, .attempt = 1};
  cluster.Settle();
  EXPECT_EQ(cluster.status().restarts, 0);
  cluster.Advance(seconds(15));
  cluster.Pass();
  EXPECT_EQ(cluster.status().restarts, 1);
}

TEST_F(HangingHead, AHeadOfAnEarlierAttemptIsNoWitness) {
  BecomeUnready();
  cluster.report() = HeadReport{.silent_since = cluster.now, .attempt = 0};
  cluster.Advance(seconds(300));
  cluster.Settle();
  EXPECT_EQ(cluster.status().restarts, 0);
}

}  // namespace
}  // namespace hetero::plan
