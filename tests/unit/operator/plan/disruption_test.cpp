// Nodes that are about to go, and jobs that wait too long for their first step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class DisruptionTest : public ::testing::Test {
 protected:
  DisruptionTest() { cluster_.RunJob(); }

  void Mark(const std::string& pod, NodeNotice::Kind kind, const std::string& sign) {
    const std::string& node = cluster_.Pod(pod).node;
    cluster_.nodes[node] = {.name = node, .notice = {.kind = kind, .sign = sign}};
  }

  ModelCluster cluster_{Job()};
};

TEST_F(DisruptionTest, TheHeadIsToldOnceWhoIsOnTheNode) {
  Mark("vit-cpu-0", NodeNotice::Kind::kLeaving, "taint karpenter.sh/disrupted");
  cluster_.Settle();
  ASSERT_THAT(cluster_.warnings, SizeIs(1));
  const std::vector<MemberNotice>& told = cluster_.warnings[0].notices;
  const auto on_node = [&](const MemberNotice& notice) {
    const std::string pod = "vit-" + notice.role + "-" + std::to_string(notice.index);
    return notice.incarnation == cluster_.Pod(pod).incarnation && !notice.may_stay &&
           notice.sign == "node " + cluster_.Pod(pod).node + ": taint karpenter.sh/disrupted";
  };
  EXPECT_FALSE(told.empty());
  for (const MemberNotice& notice : told) EXPECT_TRUE(on_node(notice)) << notice.role;
  EXPECT_EQ(cluster_.CountOf("NodeLeaving"), 1u);
  EXPECT_FALSE(cluster_.status().Is(ConditionType::kFailed));
}

TEST_F(DisruptionTest, TakenBackItIsTakenBack) {
  Mark("vit-cpu-0", NodeNotice::Kind::kMayStay, "it was cordoned");
  cluster_.Settle();
  ASSERT_THAT(cluster_.warnings, SizeIs(1));
  EXPECT_TRUE(cluster_.warnings[0].notices.at(0).may_stay);
  Mark("vit-cpu-0", NodeNotice::Kind::kNone, "");
  cluster_.Settle();
  ASSERT_THAT(cluster_.warnings, SizeIs(2));
  EXPECT_THAT(cluster_.warnings[1].notices, IsEmpty());
  EXPECT_EQ(cluster_.CountOf("NodeLeaving"), 1u);
}

TEST_F(DisruptionTest, AnotherHeadIsToldAnew) {
  Mark("vit-gpu-1", NodeNotice::Kind::kLeaving, "it is being deleted");
  cluster_.Settle();
  cluster_.report().notices_fingerprint = 0;
  cluster_.report().warned.reset();
  cluster_.Settle();
  EXPECT_THAT(cluster_.warnings, SizeIs(2));
}

// Calls may fail, or overtake each other: what the head says that it has is what counts.
TEST_F(DisruptionTest, WhoHasNotHeardIsToldAgainAndUsersOnce) {
  cluster_.head_hears = false;
  Mark("vit-gpu-1", NodeNotice::Kind::kLeaving, "it is being deleted");
  cluster_.Settle();
  cluster_.Settle();
  EXPECT_THAT(cluster_.warnings, SizeIs(1)) << "it may only not have said so yet";
  cluster_.Advance(seconds(2));
  cluster_.Settle();
  EXPECT_THAT(cluster_.warnings, SizeIs(2));
  EXPECT_EQ(cluster_.CountOf("NodeLeaving"), 1u);
  cluster_.report().takes_no_warning = true;
  cluster_.Advance(seconds(2));
  cluster_.Settle();
  EXPECT_THAT(cluster_.warnings, SizeIs(2)) << "it is of an older version";
}

// The operator was away when the taint went.
TEST_F(DisruptionTest, ANewOperatorTakesBackWhatAnEarlierOneTold) {
  cluster_.report().notices_fingerprint = 7;
  cluster_.Settle();
  ASSERT_THAT(cluster_.warnings, SizeIs(1));
  EXPECT_THAT(cluster_.warnings[0].notices, IsEmpty());
}

TEST_F(DisruptionTest, WhoCannotBeHeardIsToldLater) {
  cluster_.report().connected = false;
  Mark("vit-gpu-1", NodeNotice::Kind::kLeaving, "it is being deleted");
  cluster_.Settle();
  EXPECT_THAT(cluster_.warnings, IsEmpty());
  cluster_.report().connected = true;
  cluster_.Settle();
  EXPECT_THAT(cluster_.warnings, SizeIs(1));
}

TEST(MaxWaitTest, AJobWithoutAStepFailsAndSaysWhatItWaitsFor) {
  ModelCluster cluster{Job().MaxWait(100)};
  cluster.Change([&](ObservedJob& job) { job.created = cluster.now; });
  cluster.Settle();
  cluster.Change("vit-gpu-1", [](ObservedPod& pod) {
    pod.waiting_reason = "Unschedulable";
    pod.waiting_message = "0/3 nodes are available";
  });
  cluster.Advance(seconds(99));
  cluster.Settle();
  EXPECT_FALSE(cluster.status().Is(ConditionType::kFailed));
  cluster.Advance(seconds(1));
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/MaxWaitExceeded");
  EXPECT_THAT(cluster.Condition(ConditionType::kFailed).message,
              AllOf(HasSubstr("runPolicy.maxWaitSeconds: no step within 100 s"),
                    HasSubstr("0/3 nodes are available")));
}

TEST(MaxWaitTest, OnceItHasSteppedNothingOfItIsLeft) {
  ModelCluster cluster{Job().MaxWait(100)};
  cluster.Change([&](ObservedJob& job) { job.created = cluster.now; });
  cluster.RunJob();
  cluster.report().progress = api::JobProgress{.step = 1, .total_steps = 9};
  cluster.Settle();
  cluster.Advance(seconds(500));
  cluster.Settle();
  EXPECT_FALSE(cluster.status().Is(ConditionType::kFailed));
}

// What a status says is seconds behind, and the operator may have been away.
TEST(MaxWaitTest, AJobThatTrainsIsNotFailedByAnOldStatus) {
  ModelCluster cluster{Job().MaxWait(100)};
  cluster.Change([&](ObservedJob& job) { job.created = cluster.now; });
  cluster.RunJob();
  cluster.Advance(seconds(100));
  cluster.report().connected = false;
  cluster.Settle();
  EXPECT_FALSE(cluster.status().Is(ConditionType::kFailed)) << "nobody has heard the head yet";
  cluster.report().connected = true;
  cluster.report().progress = api::JobProgress{.step = 1, .total_steps = 9};
  cluster.Settle();
  EXPECT_FALSE(cluster.status().Is(ConditionType::kFailed));
}

TEST(MaxWaitTest, WhileSuspendedItDoesNotCountAndThenAnew) {
  ModelCluster cluster{Job().MaxWait(100).Suspend()};
  cluster.Change([&](ObservedJob& job) { job.created = cluster.now; });
  cluster.Settle();
  cluster.Advance(seconds(1000));
  cluster.Settle();
  EXPECT_FALSE(cluster.status().Is(ConditionType::kFailed));
  cluster.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = false; });
  cluster.Settle();
  EXPECT_FALSE(cluster.status().Is(ConditionType::kFailed));
  cluster.Advance(seconds(100));
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/MaxWaitExceeded");
}

// No admission sets it back: a user who says so wants to hear that the queue is too long.
TEST(MaxWaitTest, AQueueIsWaitingToo) {
  ModelCluster cluster{Job().MaxWait(100).Queue("team")};
  cluster.queues.support = ObservedQueues::Support::kServed;
  cluster.Change([&](ObservedJob& job) { job.created = cluster.now; });
  cluster.Settle();
  cluster.Advance(seconds(100));
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/MaxWaitExceeded");
  EXPECT_THAT(cluster.pods, IsEmpty());
}

TEST(ZoneTest, SameIsRefusedWhereNoNodeSaysItsZone) {
  ModelCluster cluster{Job().Zone(api::ZoneChoice::kSame)};
  cluster.zones = false;
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/InvalidSpec");
  EXPECT_THAT(cluster.Condition(ConditionType::kFailed).message,
              AllOf(HasSubstr("spec.placement.zone"), HasSubstr("topology.kubernetes.io/zone")));
}

}  // namespace
}  // namespace hetero::plan
