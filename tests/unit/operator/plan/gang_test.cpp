// Jobs whose pods a gang scheduler places together: its object before them, and every way out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using api::GangScheduler;
using children::GangApi;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using State = HeadReport::State;

// A job `vit` (1 head, 3 CPU workers of which it needs 1, 2 GPU workers).
class GangTest : public ::testing::Test {
 protected:
  GangTest() {
    cluster_.gang = {.enabled = true, .served = GangApi::kVolcano};
    cluster_.settings.pod_backoff = seconds(0);
  }
  std::string PodsCreated() const { return cluster_.State(ConditionType::kPodsCreated); }

  ModelCluster cluster_{Job().Cpus(3, 1).Gang(GangScheduler::kVolcano)};
};

TEST_F(GangTest, TheGroupIsThereBeforeThePodsWhichBelongToIt) {
  cluster_.Settle();
  ASSERT_EQ(cluster_.gangs.size(), 1u);
  const CreatePodGroup& gang = cluster_.gangs.front();
  EXPECT_EQ(gang.gang.group, "vit-gang-1");
  EXPECT_EQ(gang.gang.gang_api, GangApi::kVolcano);
  ASSERT_EQ(gang.roles.size(), 3u);
  EXPECT_EQ(gang.roles[0].count, 1);
  EXPECT_EQ(gang.roles[1].count, 1) << "what it can do without may come later";
  EXPECT_EQ(gang.roles[2].count, 2);
  const auto& calls = cluster_.calls;
  const auto made = [&calls](const std::string& name) {
    return std::find(calls.begin(), calls.end(), "create " + name) - calls.begin();
  };
  EXPECT_LT(made("vit-gang-1"), made("vit-gpu-0"));
  ASSERT_EQ(cluster_.pods.size(), 6u);
  for (const auto& [name, origin] : cluster_.origins) {
    ASSERT_TRUE(origin->gang.has_value()) << name;
    EXPECT_EQ(origin->gang->group, "vit-gang-1") << name;
  }
  EXPECT_EQ(PodsCreated(), "True/AllCreated");
}

TEST_F(GangTest, AClusterWithoutTheKindIsWaitedFor) {
  cluster_.gang.served.reset();
  cluster_.Settle();
  EXPECT_TRUE(cluster_.pods.empty());
  EXPECT_EQ(PodsCreated(), "False/GangMissing");
  EXPECT_THAT(cluster_.Condition(ConditionType::kPodsCreated).message,
              AllOf(HasSubstr("spec.scheduling.gang"), HasSubstr("scheduling.volcano.sh/v1beta1"),
                    HasSubstr("install Volcano"), HasSubstr("scheduling.gangs")));
  const Plan idle = cluster_.Pass();
  EXPECT_TRUE(idle.idle());
  EXPECT_EQ(idle.requeue_after, base::Duration(seconds(10)));
  cluster_.gang.served = GangApi::kVolcano;
  cluster_.Settle();
  EXPECT_EQ(cluster_.pods.size(), 6u);
  EXPECT_EQ(PodsCreated(), "True/AllCreated");
}

TEST_F(GangTest, TheWaitForTheKindEndsWithTheStartupDeadline) {
  cluster_.gang.served.reset();
  cluster_.Settle();
  cluster_.Advance(seconds(cluster_.job->job.spec.run_policy.startup_deadline_seconds));
  cluster_.Settle();
  EXPECT_EQ(cluster_.State(ConditionType::kFailed), "True/StartupDeadlineExceeded");
}

TEST_F(GangTest, AnOperatorThatIsNotSetUpForItRefusesTheJob) {
  cluster_.gang = {};
  cluster_.Settle();
  EXPECT_EQ(cluster_.State(ConditionType::kFailed), "True/InvalidSpec");
  EXPECT_THAT(cluster_.Condition(ConditionType::kFailed).message,
              AllOf(HasSubstr("spec.scheduling.gang"), HasSubstr("not set up for Volcano"),
                    HasSubstr("--gangs")));
}

TEST(GangRefusals, AQueueOfKueueAndAGangExcludeEachOther) {
  ModelCluster cluster{Job().Queue("team").Gang(GangScheduler::kNative)};
  cluster.gang = {.enabled = true, .served = GangApi::kNativeBeta};
  cluster.queues.support = ObservedQueues::Support::kServed;
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/InvalidSpec");
  EXPECT_THAT(cluster.Condition(ConditionType::kFailed).message,
              AllOf(HasSubstr("Native"), HasSubstr("kueue.x-k8s.io/queue-name"),
                    HasSubstr("exclude each other")));
  EXPECT_TRUE(cluster.workloads.empty());
}

// Places that the pods of the attempt before still hold must not count for the next.
TEST_F(GangTest, EachAttemptHasAGangOfItsOwn) {
  cluster_.ChangeSpec([](api::Spec& spec) {
    for (api::Role& role : spec.roles) role.restart_scope = api::RestartScope::kGang;
  });
  cluster_.RunJob();
  cluster_.Exit("vit-gpu-0", 1);
  cluster_.Settle();
  EXPECT_EQ(cluster_.status().attempt, 2);
  EXPECT_THAT(cluster_.pod_groups, ElementsAre(Key("vit-gang-1"), Key("vit-gang-2")));
  cluster_.VanishTerminating();
  cluster_.Settle();
  EXPECT_THAT(cluster_.pod_groups, ElementsAre(Key("vit-gang-2")));
  for (const auto& [name, origin] : cluster_.origins) {
    EXPECT_EQ(origin->gang->group, "vit-gang-2") << name;
  }
}

TEST_F(GangTest, APodThatIsMadeAnewJoinsTheGangThatRuns) {
  cluster_.RunJob();
  cluster_.Exit("vit-cpu-0", 1);
  cluster_.Settle();
  EXPECT_EQ(cluster_.Pod("vit-cpu-0").phase, "Pending");
  EXPECT_EQ(cluster_.origins.at("vit-cpu-0")->gang->group, "vit-gang-1");
  EXPECT_EQ(cluster_.gangs.size(), 1u);
}

TEST_F(GangTest, AGangThatWaitsIsMadeAnewWhenTheJobNeedsFewer) {
  cluster_.ChangeSpec([](api::Spec& spec) { spec.roles[1].min_replicas = 3; });
  cluster_.Settle();
  EXPECT_EQ(cluster_.pod_groups.at("vit-gang-1")->min_member, 6);
  cluster_.ChangeSpec([](api::Spec& spec) { spec.roles[1].min_replicas = 0; });
  cluster_.Settle();
  EXPECT_EQ(cluster_.pod_groups.at("vit-gang-1")->min_member, 3);
  EXPECT_EQ(cluster_.pods.size(), 6u);
  cluster_.RunJob();
  cluster_.ChangeSpec([](api::Spec& spec) { spec.roles[1].min_replicas = 2; });
  cluster_.Settle();
  EXPECT_EQ(cluster_.gangs.size(), 2u) << "whoever runs has its places";
}

// Kubernetes' own PodGroups stay until no pod of them is left: it would never be gone.
TEST_F(GangTest, AGroupThatItsPodsHoldIsLeftAsItIs) {
  cluster_.gang.served = GangApi::kNativeBeta;
  cluster_.Settle();
  cluster_.ChangeSpec([](api::Spec& spec) { spec.roles[1].min_replicas = 3; });
  cluster_.Settle();
  EXPECT_EQ(cluster_.pod_groups.at("vit-gang-1")->min_member, 4);
  // Somebody else has deleted it.
  auto deleting = std::make_shared<ObservedObject>(*cluster_.pod_groups.at("vit-gang-1"));
  deleting->deleting = true;
  cluster_.pod_groups["vit-gang-1"] = deleting;
  cluster_.RunJob();
  cluster_.Exit("vit-gpu-0", 1);
  cluster_.Settle();
  EXPECT_EQ(cluster_.Pod("vit-gpu-0").phase, "Pending") << "made again all the same";
}

TEST_F(GangTest, AGroupThatSomebodyDeletesIsMadeAgain) {
  cluster_.RunJob();
  cluster_.pod_groups.clear();
  cluster_.Settle();
  EXPECT_EQ(cluster_.gangs.size(), 2u);
  EXPECT_EQ(cluster_.pods.size(), 6u);
}

TEST_F(GangTest, ARunningJobGoesOnWithoutTheKind) {
  cluster_.RunJob();
  cluster_.pod_groups.clear();
  cluster_.gang.served.reset();
  cluster_.Settle();
  EXPECT_EQ(PodsCreated(), "True/AllCreated");
  EXPECT_FALSE(cluster_.Pass().requeue_after.has_value());
  cluster_.HeadSays(State::kSucceeded);
  cluster_.report().verdict = api::Verdict{.succeeded = true};
  cluster_.Settle();
  EXPECT_TRUE(cluster_.status().Is(ConditionType::kSucceeded));
}

TEST_F(GangTest, SuspendedItKeepsNoRoom) {
  cluster_.RunJob();
  cluster_.Suspend();
  EXPECT_TRUE(cluster_.pod_groups.empty());
  cluster_.ChangeSpec([](api::Spec& spec) {
    spec.run_policy.suspend = false;
    spec.scheduling->gang = GangScheduler::kCoscheduling;
  });
  cluster_.gang.served = GangApi::kCoscheduling;
  cluster_.Settle();
  EXPECT_EQ(cluster_.pod_groups.at("vit-gang-2")->gang_api, GangApi::kCoscheduling);
  EXPECT_EQ(cluster_.origins.at("vit-gpu-0")->gang->gang_api, GangApi::kCoscheduling);
}

TEST_F(GangTest, TheGroupGoesWithThePodsAtTheEnd) {
  for (const api::CleanPodPolicy clean :
       {api::CleanPodPolicy::kAll, api::CleanPodPolicy::kRunning}) {
    ModelCluster cluster{Job().Gang(GangScheduler::kVolcano).CleanPods(clean)};
    cluster.gang = cluster_.gang;
    cluster.RunJob();
    EXPECT_EQ(cluster.pod_groups.size(), 1u);
    cluster.HeadSays(State::kSucceeded);
    cluster.report().verdict = api::Verdict{.succeeded = true};
    cluster.Settle();
    EXPECT_TRUE(cluster.pod_groups.empty());
  }
}

TEST_F(GangTest, WithoutASchedulerThereIsNoGang) {
  ModelCluster cluster{Job().Gang(GangScheduler::kNone)};
  cluster.gang = {};
  cluster.Settle();
  EXPECT_TRUE(cluster.gangs.empty());
  EXPECT_FALSE(cluster.origins.at("vit-gpu-0")->gang.has_value());
}

}  // namespace
}  // namespace hetero::plan
