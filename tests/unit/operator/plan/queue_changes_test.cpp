// Jobs in a queue whose label, spec, rights or Kueue itself change.
#include "api/labels.h"
#include "tests/unit/operator/plan/queue_fixture.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using std::chrono::seconds;
using ::testing::HasSubstr;
using State = HeadReport::State;
using Support = ObservedQueues::Support;

TEST_F(QueueTest, WithoutItsLabelAnEvictedJobBeginsAnewAndItsDeadlinesToo) {
  Train();
  LoseQuota();
  cluster_.Advance(std::chrono::hours(1));
  cluster_.Change([](ObservedJob& job) { job.job.metadata.labels.clear(); });
  cluster_.Settle();
  EXPECT_FALSE(cluster_.status().finished()) << "by a deadline of the time before";
  EXPECT_EQ(Queued(), "False/NotQueued");
  EXPECT_EQ(cluster_.status().attempt, 2);
  EXPECT_EQ(cluster_.status().start_time, cluster_.now);
  EXPECT_EQ(cluster_.pods.size(), 5u);
}

// Kueue has given its quota to others.
TEST_F(QueueTest, AWorkloadThatSomebodyFinishesIsLostAndMadeAnew) {
  Train();
  const std::string first = cluster_.Gang().uid;
  cluster_.ChangeGang([](ObservedWorkload& gang) {
    gang.conditions.push_back({.type = "Finished", .status = "True", .reason = "OutOfSync"});
  });
  cluster_.Settle();
  EXPECT_EQ(Queued(), "True/Evicted");
  EXPECT_THAT(cluster_.Condition(ConditionType::kQueued).message,
              HasSubstr("was set to Finished by somebody else"));
  cluster_.HeadSays(State::kStopped);
  cluster_.Settle();
  cluster_.VanishTerminating();
  cluster_.Settle();
  EXPECT_NE(cluster_.Gang().uid, first);
  EXPECT_EQ(Queued(), "True/Pending");
  EXPECT_TRUE(cluster_.pods.empty());
}

TEST_F(QueueTest, AJobThatIsNamedAQueueWhileItRunsGoesOnWithoutOne) {
  ModelCluster cluster{Job()};
  cluster.queues.support = Support::kServed;
  cluster.RunJob();
  cluster.Change([](ObservedJob& job) { job.job.metadata.labels[api::kQueueLabel] = "team"; });
  cluster.Settle();
  cluster.Advance(seconds(20));
  cluster.Settle();
  EXPECT_TRUE(cluster.status().Is(ConditionType::kRunning));
  EXPECT_EQ(cluster.State(ConditionType::kQueued), "False/NotQueued");
  cluster.Exit("vit-cpu-0", 1);
  cluster.Settle();
  EXPECT_EQ(cluster.Pod("vit-cpu-0").phase, "Pending") << "it is replaced";
  cluster.Suspend();
  cluster.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = false; });
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kQueued), "True/Pending");
}

// The quota of a Workload is for the spec that it was made from.
TEST_F(QueueTest, ASpecThatChangedIsQueuedAnew) {
  cluster_.Settle();
  const std::string first = cluster_.Gang().uid;
  cluster_.ChangeSpec([](api::Spec& spec) { spec.roles[2].pod_template = R"({"spec":{}})"; });
  cluster_.Settle();
  EXPECT_NE(cluster_.Gang().uid, first) << "a suspension that came and went unseen";
  const std::string second = cluster_.Gang().uid;
  cluster_.ChangeGang([](ObservedWorkload& gang) {
    gang.conditions = {{.type = "QuotaReserved", .status = "True", .reason = "QuotaReserved"}};
  });
  cluster_.ChangeSpec([](api::Spec& spec) { spec.roles[1].replicas = 4; });
  cluster_.Settle();
  EXPECT_EQ(cluster_.Gang().uid, second) << "a check may be making nodes for it";
  cluster_.Admit();
  cluster_.Settle();
  EXPECT_NE(cluster_.Gang().uid, second);
  EXPECT_EQ(cluster_.Gang().CountOf("cpu"), 4);
  EXPECT_TRUE(cluster_.pods.empty()) << "fewer than the job needs";
}

TEST_F(QueueTest, AnAutoscaledJobIsQueuedAgainWithWhatItBeginsWith) {
  ModelCluster cluster(Job().Cpus(2).Autoscale(1, 9).Queue("team"));
  cluster.queues = cluster_.queues;
  cluster.Settle();
  cluster.Admit();
  cluster.RunJob();
  cluster.sizing["cpu"] = {9, "measured"};
  cluster.HeadSays(State::kRunning);
  cluster.Settle();
  cluster.Evict("Preempted", kPreempted);
  cluster.Settle();
  cluster.HeadSays(State::kStopped);
  cluster.Settle();
  cluster.VanishTerminating();
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("create vit-gang"), 1u);
  EXPECT_EQ(cluster.Gang().CountOf("cpu"), 2);
}

TEST_F(QueueTest, KueuesClockOfAGangThatIsNotReadyBeginsAnewWithTheNextAdmission) {
  Train();
  cluster_.Exit("vit-gpu-0", 1);
  cluster_.Exit("vit-gpu-1", 1);
  cluster_.Settle();
  EXPECT_EQ(cluster_.GangState("PodsReady"), "False/WaitForRecovery");
  cluster_.Evict("PodsReadyTimeout", "not ready");
  cluster_.Settle();
  cluster_.VanishTerminating();
  cluster_.Advance(seconds(100));
  cluster_.Settle();
  cluster_.VanishTerminating();
  cluster_.Settle();
  EXPECT_EQ(cluster_.GangState("PodsReady"), "False/WaitForStart");
}

// Of no other word does Kueue see, once it is activated again, that it may be queued again.
TEST_F(QueueTest, EveryDeactivationIsCalledThat) {
  Train();
  cluster_.ChangeGang([](ObservedWorkload& gang) { gang.active = false; });
  LoseQuota("DeactivatedDueToRequeuingLimitExceeded");
  EXPECT_EQ(cluster_.GangState("Requeued"), "False/Deactivated");
}

TEST_F(QueueTest, AWorkloadThatIsRefusedSaysWhy) {
  cluster_.create_error = CreateError{.message = "workload vit-gang exists and belongs to no job"};
  cluster_.Pass();
  EXPECT_EQ(Queued(), "True/Inadmissible");
  EXPECT_THAT(Message(), HasSubstr("belongs to no job"));
}

TEST_F(QueueTest, WhatIsReplacedWaitsForItsFlavorAndForKueueItself) {
  Train();
  cluster_.queues.flavors.clear();
  cluster_.Exit("vit-cpu-0", 1);
  cluster_.Settle();
  EXPECT_FALSE(cluster_.Has("vit-cpu-0")) << "it would run anywhere";
  EXPECT_EQ(cluster_.pods.size(), 4u);
  cluster_.queues.flavors["on-demand"] = {};
  cluster_.Settle();
  EXPECT_TRUE(cluster_.Has("vit-cpu-0"));
  // A new operator, and the right to read Workloads is gone.
  cluster_.queues.support = Support::kMissing;
  cluster_.workloads.clear();
  cluster_.Exit("vit-cpu-1", 1);
  cluster_.Settle();
  EXPECT_FALSE(cluster_.Has("vit-cpu-1"));
  cluster_.Advance(std::chrono::hours(1));
  cluster_.Settle();
  EXPECT_FALSE(cluster_.status().finished());
}

}  // namespace
}  // namespace hetero::plan
