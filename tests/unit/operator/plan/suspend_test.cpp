// Suspensions: how a training is stopped first, and how it goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using std::chrono::seconds;
using ::testing::UnorderedElementsAre;
using State = HeadReport::State;

void Suspend(ModelCluster& cluster, bool suspend = true) {
  cluster.ChangeSpec([suspend](api::Spec& spec) { spec.run_policy.suspend = suspend; });
}

// All that was left of a job that has stopped goes, and its next attempt begins.
void ExpectNextAttempt(ModelCluster& cluster) {
  EXPECT_EQ(cluster.CountOf("delete pods"), 0u);
  cluster.HeadSays(State::kStopped);
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("delete pods"), 1u);
  cluster.VanishTerminating();
  cluster.Settle();
  EXPECT_EQ(cluster.status().attempt, 2);
  EXPECT_EQ(cluster.status().restarts, 0);
  EXPECT_EQ(cluster.pods.size(), 4u);
}

TEST(SuspendTest, PodsGoAndTheRestStays) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = true; });
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kSuspended), "False/Suspending");
  EXPECT_EQ(cluster.State(ConditionType::kRunning), "False/Suspended");
  cluster.HeadSays(State::kStopped);
  cluster.Settle();
  for (const char* pod : {"vit-head-0", "vit-cpu-0", "vit-gpu-0", "vit-gpu-1"}) cluster.Vanish(pod);
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kSuspended), "True/Suspended");
  EXPECT_EQ(cluster.State(ConditionType::kPodsCreated), "False/Suspended");
  EXPECT_EQ(cluster.status().registered, "0/3");
  EXPECT_TRUE(cluster.secret);
  EXPECT_NE(cluster.service, nullptr);
  EXPECT_EQ(cluster.CountOf("delete pods"), 1u);

  const auto authority = cluster.config_map->uid;
  cluster.Advance(seconds(1000));
  cluster.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = false; });
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kSuspended), "False/Resumed");
  EXPECT_EQ(cluster.status().attempt, 2);
  EXPECT_EQ(cluster.status().restarts, 0);
  EXPECT_EQ(cluster.status().start_time, cluster.now);
  EXPECT_NE(cluster.config_map->uid, authority);
  EXPECT_EQ(cluster.Pod("vit-gpu-0").attempt, 2);
  EXPECT_THAT(cluster.events, UnorderedElementsAre("JobStarted", "Suspended", "Resumed"));
}

TEST(SuspendTest, PodsWereDeletedBeforeTheCheckpointWasWritten) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = true; });
  const Plan first = cluster.Pass();
  EXPECT_EQ(cluster.CountOf("stop head"), 1u);
  EXPECT_TRUE(first.follow.has_value()) << "nobody would hear that the training has stopped";
  cluster.Advance(seconds(59));
  EXPECT_TRUE(cluster.Pass().follow.has_value());
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("stop head"), 1u);
  EXPECT_EQ(cluster.CountOf("delete pods"), 0u);
  cluster.HeadSays(State::kStopped);
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("delete pods"), 1u);
}

// On a busy machine the kubelet's word of its end comes before what the head itself said last.
TEST(SuspendTest, AHeadThatHasEndedIsHeardToItsEnd) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  Suspend(cluster);
  cluster.Settle();
  cluster.Exit("vit-head-0", 130);
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("delete pods"), 0u);
  cluster.report().state = State::kStopped;
  cluster.report().history = "all of it";
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("delete pods"), 1u);
  EXPECT_EQ(cluster.status().history, "all of it");

  ModelCluster broken{Job()};
  broken.RunJob();
  Suspend(broken);
  broken.Settle();
  broken.Exit("vit-head-0", 137);
  broken.report().connected = false;  // nothing more will come
  broken.Settle();
  EXPECT_EQ(broken.CountOf("delete pods"), 1u);
}

// Its ranks hold the state while they wait for the one that is missing.
TEST(SuspendTest, ATrainingThatWaitsForARankIsStoppedInOrderToo) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.Exit("vit-head-0", 137, "Evicted");
  cluster.Settle();
  cluster.Start("vit-head-0");
  cluster.HeadSays(State::kRunning);
  cluster.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = true; });
  cluster.Pass();
  EXPECT_EQ(cluster.CountOf("stop head"), 1u);
}

TEST(SuspendTest, ATrainingThatDoesNotStopIsWaitedForNoLongerThanItsGrace) {
  for (const int grace : {0, 7, 60}) {
    ModelCluster cluster{Job()};
    cluster.RunJob();
    cluster.ChangeSpec([grace](api::Spec& spec) {
      spec.run_policy.suspend = true;
      spec.run_policy.stop_grace_seconds = grace;
    });
    cluster.Pass();
    if (grace > 0) {
      cluster.Advance(seconds(grace - 1));
      cluster.Settle();
      EXPECT_EQ(cluster.CountOf("delete pods"), 0u) << grace;
      cluster.Advance(seconds(1));
    }
    cluster.Settle();
    EXPECT_EQ(cluster.CountOf("delete pods"), 1u) << grace;
  }
}

TEST(SuspendTest, WithoutATrainingNothingIsWaitedFor) {
  ModelCluster cluster{Job()};
  cluster.Settle();
  cluster.StartAll();
  cluster.HeadSays(State::kWaiting);
  cluster.Settle();
  cluster.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = true; });
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("stop head"), 0u);
  EXPECT_EQ(cluster.CountOf("delete pods"), 1u);
}

TEST(SuspendTest, SuspendedFromTheBeginning) {
  ModelCluster cluster{Job().Suspend()};
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kSuspended), "True/Suspended");
  EXPECT_TRUE(cluster.Empty());
  EXPECT_FALSE(cluster.status().start_time);
  cluster.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = false; });
  cluster.Settle();
  EXPECT_EQ(cluster.status().attempt, 1);
  EXPECT_EQ(cluster.pods.size(), 4u);
}

// Nobody was told, and the pods were deleted once the grace was over, or at once.
TEST(SuspendTest, AHeadWhoseStreamIsBrokenIsToldOnceItIsBack) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.report().connected = false;
  Suspend(cluster);
  EXPECT_TRUE(cluster.Pass().follow.has_value());
  cluster.Advance(seconds(3));
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("stop head"), 0u);
  cluster.HeadSays(State::kRunning);
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("stop head"), 1u);
  EXPECT_EQ(cluster.CountOf("delete pods"), 0u);
  cluster.HeadSays(State::kStopped);
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("delete pods"), 1u);
}

// It knew of no head, took that for one without a training and deleted its pods.
TEST(SuspendTest, AnOperatorThatIsReplacedMeanwhileCutsNoCheckpoint) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  Suspend(cluster);
  cluster.Pass();
  cluster.head.reset();  // of the process
  const Plan first = cluster.Pass();
  EXPECT_TRUE(first.follow.has_value());
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("delete pods"), 0u);
  cluster.HeadSays(State::kRunning);
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("stop head"), 2u) << "whether it was told, nobody knows";
  EXPECT_EQ(cluster.CountOf("delete pods"), 0u);
  cluster.HeadSays(State::kStopped);
  cluster.report().connected = false;  // it has left
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("delete pods"), 1u);
}

TEST(SuspendTest, AHeadThatHasNotHeardIsAskedEverySecond) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  Suspend(cluster);
  for (size_t asked = 1; asked < 4; ++asked) {
    const Plan plan = cluster.Pass();
    EXPECT_EQ(cluster.CountOf("stop head"), asked);
    EXPECT_EQ(plan.requeue_after, seconds(1));
    cluster.report().told_to_end = false;  // the call was lost
    cluster.Advance(seconds(1));
  }
}

// It began when the training last ran, which may be long ago.
TEST(SuspendTest, TheGraceBeginsWithTheSuspension) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.Exit("vit-head-0", 137, "Evicted");
  cluster.report().connected = false;
  cluster.Settle();
  cluster.Start("vit-head-0");
  cluster.Settle();
  ASSERT_FALSE(cluster.status().Is(ConditionType::kRunning));
  cluster.Advance(seconds(100));
  cluster.HeadSays(State::kRunning);
  Suspend(cluster);
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("stop head"), 1u);
  cluster.Advance(seconds(59));
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("delete pods"), 0u);
  cluster.Advance(seconds(1));
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("delete pods"), 1u);
}

TEST(SuspendTest, AHeadThatIsNeverHeardIsWaitedForNoLongerThanItsGrace) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.head.reset();
  Suspend(cluster);
  cluster.Pass();
  EXPECT_EQ(cluster.Pass().requeue_after, seconds(60));
  cluster.Advance(seconds(59));
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("delete pods"), 0u);
  cluster.Advance(seconds(1));
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("delete pods"), 1u);
}

// The spec may be changed as soon as suspend is set.
TEST(SuspendTest, TheHeadIsFollowedByTheAuthorityOfItsAttempt) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.ChangeSpec([](api::Spec& spec) {
    spec.run_policy.suspend = true;
    spec.network.tls = api::Switch::kDisabled;
  });
  const Plan plan = cluster.Pass();
  ASSERT_TRUE(plan.follow.has_value());
  EXPECT_EQ(plan.follow->ca_pem, cluster.config_map->ca_pem);
  EXPECT_NE(plan.follow->ca_pem, "");
}

// The checkpoint that was being written was cut by the deletion of the pods.
TEST(SuspendTest, ResumedBeforeThePodsAreGone) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  Suspend(cluster);
  cluster.Pass();
  Suspend(cluster, false);
  cluster.Settle();
  EXPECT_FALSE(cluster.Pod("vit-gpu-0").deletion_time);
  EXPECT_EQ(cluster.CountOf("stop head"), 1u);
  EXPECT_TRUE(cluster.Pass().follow.has_value()) << "nobody would hear that it has stopped";
  ExpectNextAttempt(cluster);
}

TEST(SuspendTest, ResumedBeforeTheTrainingStoppedWaitsNoLongerThanTheGrace) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  Suspend(cluster);
  cluster.Pass();
  cluster.Advance(seconds(10));
  Suspend(cluster, false);
  cluster.Settle();
  cluster.Advance(seconds(49));
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("delete pods"), 0u);
  cluster.Advance(seconds(1));
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("delete pods"), 1u);
}

TEST(SuspendTest, ASpecChangedUnseenStopsTheTrainingFirst) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = true; });
  cluster.ChangeSpec([](api::Spec& spec) {
    spec.run_policy.suspend = false;
    spec.training.batch_size_per_worker = 7;
  });
  EXPECT_TRUE(cluster.Pass().follow.has_value());
  EXPECT_EQ(cluster.CountOf("stop head"), 1u);
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kSuspended), "False/SpecChanged");
  ExpectNextAttempt(cluster);
}

// What ends because of a suspension proves no failure, though it is over by then.
TEST(SuspendTest, AHeadThatFailsWhileItStopsFailsNoResumedJob) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  Suspend(cluster);
  cluster.Pass();
  Suspend(cluster, false);
  cluster.HeadSays(State::kFailed);
  cluster.report().verdict = api::Verdict{.message = "a rank was lost while it stopped"};
  cluster.Settle();
  EXPECT_FALSE(cluster.status().finished());
  EXPECT_EQ(cluster.CountOf("delete pods"), 1u);
}

}  // namespace
}  // namespace hetero::plan
