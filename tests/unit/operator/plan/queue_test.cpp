// Jobs in a queue of Kueue: admission, eviction, the way back, and every end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/labels.h"
#include "tests/unit/operator/plan/queue_fixture.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using State = HeadReport::State;
using Support = ObservedQueues::Support;

TEST_F(QueueTest, NothingIsMadeBeforeTheAdmission) {
  cluster_.Settle();
  EXPECT_THAT(cluster_.calls, Contains("create vit-gang"));
  EXPECT_EQ(cluster_.service, nullptr);
  EXPECT_TRUE(cluster_.pods.empty());
  EXPECT_EQ(Queued(), "True/Pending");
  EXPECT_EQ(cluster_.status().attempt, 0);
  EXPECT_FALSE(cluster_.status().start_time.has_value());
  EXPECT_EQ(cluster_.Gang().queue, "team");
  EXPECT_THAT(cluster_.Gang().pod_sets,
              UnorderedElementsAre(Pair("head", 1), Pair("cpu", 2), Pair("gpu", 2)));
  EXPECT_EQ(cluster_.CountOf("create vit-gang"), 1u);

  cluster_.Advance(std::chrono::hours(1));
  cluster_.Settle();
  EXPECT_FALSE(cluster_.status().finished()) << "a deadline counted before the admission";
  cluster_.Admit();
  cluster_.Settle();
  EXPECT_EQ(Queued(), "False/Admitted");
  EXPECT_EQ(cluster_.status().attempt, 1);
  EXPECT_EQ(cluster_.status().start_time, cluster_.now);
  EXPECT_EQ(cluster_.pods.size(), 5u);
  EXPECT_THAT(cluster_.events, UnorderedElementsAre("Queued", "Admitted"));
}

TEST_F(QueueTest, PodsGetWhatTheAdmissionSays) {
  cluster_.Settle();
  cluster_.Admit();
  cluster_.ChangeGang([](ObservedWorkload& gang) {
    gang.checks = {{.name = "nodes",
                    .state = "Ready",
                    .updates = {{.name = "gpu",
                                 .annotations = {{"consume-provisioning-request", "vit"}},
                                 .node_selector = {{"zone", "a"}}}}}};
    gang.assignments.back().topology = gang.assignments.back().name == "head";
  });
  cluster_.Settle();
  ASSERT_EQ(cluster_.pods.size(), 5u);
  const children::Placement& gpu = *cluster_.placements.at("vit-gpu-1");
  EXPECT_EQ(gpu.workload, "vit-gang");
  EXPECT_EQ(gpu.pod_set, "gpu");
  EXPECT_THAT(gpu.node_selector, UnorderedElementsAre(Pair("pool", "gpu"), Pair("zone", "a")));
  EXPECT_THAT(gpu.tolerations, UnorderedElementsAre(R"({"key":"gpu"})"));
  EXPECT_THAT(gpu.annotations, Contains(Pair("consume-provisioning-request", "vit")));
  EXPECT_FALSE(gpu.gated);
  EXPECT_TRUE(cluster_.placements.at("vit-head-0")->gated);
  EXPECT_THAT(cluster_.placements.at("vit-cpu-0")->node_selector, Not(Contains(Pair("zone", "a"))));
}

TEST_F(QueueTest, TheConditionHasKueuesOwnWords) {
  cluster_.Settle();
  cluster_.ChangeGang([](ObservedWorkload& gang) {
    gang.conditions = {{.type = "QuotaReserved",
                        .status = "False",
                        .reason = "Inadmissible",
                        .message = "LocalQueue team doesn't exist"}};
  });
  cluster_.Settle();
  EXPECT_EQ(Queued(), "True/Inadmissible");
  EXPECT_EQ(Message(), "LocalQueue team doesn't exist");

  cluster_.ChangeGang([](ObservedWorkload& gang) {
    gang.holds_quota = true;
    gang.conditions = {{.type = "QuotaReserved", .status = "True", .reason = "QuotaReserved"}};
    gang.checks = {{.name = "nodes", .state = "Pending", .message = "asked for 2 nodes"}};
  });
  cluster_.Settle();
  EXPECT_EQ(Queued(), "True/Pending");
  EXPECT_EQ(Message(),
            "quota is reserved; waiting for admission check nodes (Pending): asked for 2 nodes");
  EXPECT_TRUE(cluster_.pods.empty());
}

TEST_F(QueueTest, AFlavorThatIsNotKnownIsWaitedFor) {
  cluster_.Settle();
  cluster_.Admit(ModelCluster::kGang, "spot");
  cluster_.Settle();
  EXPECT_TRUE(cluster_.pods.empty());
  EXPECT_THAT(Message(), HasSubstr("ResourceFlavor that cannot be read: spot"));
  cluster_.queues.flavors["spot"] = {};
  cluster_.Settle();
  EXPECT_EQ(cluster_.pods.size(), 5u);
}

TEST_F(QueueTest, AnEvictionStopsTheTrainingBeforeItGivesTheQuotaBack) {
  Train();
  EXPECT_EQ(cluster_.GangState("PodsReady"), "True/Started");
  cluster_.Evict("Preempted", kPreempted);
  cluster_.Settle();
  EXPECT_EQ(Queued(), "True/Evicted");
  EXPECT_EQ(Message(), kPreempted);
  EXPECT_EQ(cluster_.State(ConditionType::kRunning), "False/Evicted");
  EXPECT_EQ(cluster_.CountOf("stop head"), 1u);
  EXPECT_EQ(cluster_.pods.size(), 5u) << "before the checkpoint is written";
  cluster_.HeadSays(State::kStopped);
  cluster_.Settle();
  EXPECT_EQ(cluster_.CountOf("delete pods"), 1u);
  EXPECT_EQ(cluster_.CountOf("release vit-gang"), 0u) << "pods are still there";
  cluster_.VanishTerminating();
  cluster_.Settle();
  EXPECT_EQ(cluster_.CountOf("release vit-gang"), 1u);
  EXPECT_FALSE(cluster_.Gang().holds_quota);
  EXPECT_EQ(cluster_.GangState("QuotaReserved"), "False/Pending");
  EXPECT_EQ(cluster_.GangState("Admitted"), "False/NoReservation");
  EXPECT_EQ(cluster_.GangState("Requeued"), "True/Preempted");
  EXPECT_EQ(cluster_.GangState("PodsReady"), "False/WaitForStart");

  cluster_.Advance(std::chrono::hours(5));
  cluster_.Settle();
  EXPECT_EQ(Queued(), "True/Evicted");
  cluster_.Admit();
  cluster_.Settle();
  EXPECT_EQ(Queued(), "False/Admitted");
  EXPECT_EQ(cluster_.status().attempt, 2);
  EXPECT_EQ(cluster_.status().restarts, 0);
  EXPECT_EQ(cluster_.status().start_time, cluster_.now);
  EXPECT_EQ(cluster_.pods.size(), 5u);
  EXPECT_THAT(cluster_.origins.at("vit-head-0")->attempt_cause, HasSubstr("admitted again"));
  cluster_.head.reset();
  cluster_.RunJob();
  EXPECT_TRUE(cluster_.status().Is(ConditionType::kRunning));
  EXPECT_EQ(cluster_.GangState("PodsReady"), "True/Started");
}

TEST_F(QueueTest, AHeadThatDoesNotStopIsGivenTheGraceAndNoMore) {
  Train();
  cluster_.Evict("Preempted", kPreempted);
  cluster_.Settle();
  cluster_.Advance(seconds(59));
  cluster_.Settle();
  EXPECT_EQ(cluster_.CountOf("delete pods"), 0u);
  cluster_.Advance(seconds(1));
  cluster_.Settle();
  EXPECT_EQ(cluster_.CountOf("delete pods"), 1u);
}

// Kueue itself says when such a Workload is queued again.
TEST_F(QueueTest, OtherEvictionsAreNotRequeuedByUs) {
  Train();
  LoseQuota("PodsReadyTimeout");
  EXPECT_EQ(cluster_.GangState("Requeued"), "False/PodsReadyTimeout");
}

TEST_F(QueueTest, ADeactivatedWorkloadSaysHowItGoesOn) {
  Train();
  cluster_.ChangeGang([](ObservedWorkload& gang) { gang.active = false; });
  cluster_.Settle();
  EXPECT_EQ(Queued(), "True/Deactivated");
  EXPECT_THAT(Message(), HasSubstr("spec.active of Workload vit-gang is false; set it to true"));
  LoseQuota("Deactivated");
  EXPECT_TRUE(cluster_.pods.empty());
  EXPECT_FALSE(cluster_.Gang().holds_quota);
  EXPECT_EQ(Queued(), "True/Deactivated");
}

TEST_F(QueueTest, AWorkloadThatSomebodyDeletedStopsTheJobAndIsMadeAnew) {
  Train();
  const auto gang = cluster_.workloads;
  cluster_.workloads.clear();
  cluster_.Settle();
  EXPECT_EQ(Queued(), "False/WorkloadMissing");
  EXPECT_TRUE(cluster_.status().Is(ConditionType::kRunning)) << "Kueue itself may be going";
  cluster_.workloads = gang;
  cluster_.Settle();
  EXPECT_EQ(Queued(), "False/Admitted");
  cluster_.workloads.clear();
  cluster_.Settle();
  cluster_.Advance(seconds(10));
  cluster_.Settle();
  EXPECT_EQ(Queued(), "True/Evicted");
  EXPECT_EQ(Message(), "its Workload was deleted");
  EXPECT_EQ(cluster_.CountOf("create vit-gang"), 1u) << "while pods are there";
  cluster_.HeadSays(State::kStopped);
  cluster_.Settle();
  cluster_.VanishTerminating();
  cluster_.Settle();
  EXPECT_EQ(cluster_.CountOf("create vit-gang"), 2u);
  cluster_.Admit();
  cluster_.Settle();
  EXPECT_EQ(cluster_.status().attempt, 2);
}

TEST_F(QueueTest, ASuspendedJobHoldsNoQuota) {
  Train();
  cluster_.Suspend();
  EXPECT_EQ(cluster_.State(ConditionType::kSuspended), "True/Suspended");
  EXPECT_EQ(Queued(), "False/Suspended");
  EXPECT_TRUE(cluster_.workloads.empty());
  cluster_.ChangeSpec([](api::Spec& spec) {
    spec.run_policy.suspend = false;
    spec.roles[1].replicas = spec.roles[1].min_replicas.emplace(3);
  });
  cluster_.Settle();
  EXPECT_EQ(cluster_.State(ConditionType::kSuspended), "False/Resumed");
  EXPECT_EQ(Queued(), "True/Pending");
  EXPECT_TRUE(cluster_.pods.empty());
  EXPECT_EQ(cluster_.Gang().CountOf("cpu"), 3);
  cluster_.Admit();
  cluster_.Settle();
  EXPECT_EQ(cluster_.status().attempt, 2);
  EXPECT_EQ(cluster_.pods.size(), 6u);
}

TEST_F(QueueTest, AJobThatIsSuspendedInTheQueueLeavesIt) {
  cluster_.Settle();
  cluster_.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = true; });
  cluster_.Settle();
  EXPECT_TRUE(cluster_.workloads.empty());
  EXPECT_EQ(Queued(), "False/Suspended");
  cluster_.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = false; });
  cluster_.Settle();
  cluster_.Admit();
  cluster_.Settle();
  EXPECT_EQ(cluster_.status().attempt, 1);
  EXPECT_EQ(cluster_.pods.size(), 5u);
}

TEST_F(QueueTest, TheWorkloadIsFinishedWhenNoPodRunsAnyMore) {
  Train();
  cluster_.report().verdict = api::Verdict{.succeeded = true};
  cluster_.HeadSays(State::kSucceeded);
  cluster_.Settle();
  EXPECT_TRUE(cluster_.status().Is(ConditionType::kSucceeded));
  EXPECT_EQ(cluster_.GangState("Finished"), "absent") << "pods still use the quota";
  cluster_.VanishTerminating();
  cluster_.Settle();
  EXPECT_EQ(cluster_.GangState("Finished"), "True/Succeeded");
  EXPECT_EQ(cluster_.CountOf("update vit-gang Finished"), 1u);
}

TEST_F(QueueTest, AFailedJobGivesItsQuotaBackToo) {
  cluster_.ChangeSpec([](api::Spec& spec) { spec.run_policy.startup_deadline_seconds = 60; });
  cluster_.Settle();
  cluster_.Admit();
  cluster_.Settle();
  cluster_.Advance(seconds(60));
  cluster_.Settle();
  EXPECT_EQ(cluster_.State(ConditionType::kFailed), "True/StartupDeadlineExceeded");
  cluster_.VanishTerminating();
  cluster_.Settle();
  EXPECT_EQ(cluster_.GangState("Finished"), "True/Failed");
  EXPECT_THAT(cluster_.Gang().Find("Finished")->message, HasSubstr("StartupDeadlineExceeded: "));
}

TEST_F(QueueTest, WithoutKueueNothingBeginsAndWhatRunsGoesOn) {
  cluster_.queues.support = Support::kMissing;
  cluster_.Settle();
  EXPECT_EQ(Queued(), "False/KueueMissing");
  EXPECT_THAT(Message(), HasSubstr("install Kueue 0.15 or newer, give the operator its rights"));
  EXPECT_TRUE(cluster_.pods.empty());
  cluster_.queues.support = Support::kServed;
  Train();
  cluster_.queues.support = Support::kMissing;
  cluster_.workloads.clear();
  cluster_.Settle();
  EXPECT_EQ(cluster_.pods.size(), 5u);
  EXPECT_TRUE(cluster_.status().Is(ConditionType::kRunning));
  EXPECT_EQ(Queued(), "False/Admitted");
}

TEST_F(QueueTest, AnotherQueueOrPriorityMakesAnotherWorkloadUntilQuotaIsReserved) {
  cluster_.Settle();
  cluster_.Change([](ObservedJob& job) { job.job.metadata.labels[api::kQueueLabel] = "other"; });
  cluster_.Settle();
  EXPECT_EQ(cluster_.Gang().queue, "other");
  cluster_.Change(
      [](ObservedJob& job) { job.job.metadata.labels[api::kQueuePriorityLabel] = "high"; });
  cluster_.Settle();
  EXPECT_EQ(cluster_.Gang().priority_class, "") << "no such class";
  cluster_.queues.priorities["high"] = 1000;
  cluster_.Settle();
  EXPECT_EQ(cluster_.Gang().priority_class, "high");
  Train();
  cluster_.Change([](ObservedJob& job) { job.job.metadata.labels[api::kQueueLabel] = "third"; });
  cluster_.Settle();
  EXPECT_EQ(cluster_.Gang().queue, "other");
  EXPECT_TRUE(cluster_.status().Is(ConditionType::kRunning));
}

TEST_F(QueueTest, APriorityClassThatIsNotThereIsNamed) {
  cluster_.Change(
      [](ObservedJob& job) { job.job.metadata.labels[api::kQueuePriorityLabel] = "high"; });
  cluster_.Settle();
  EXPECT_EQ(Queued(), "True/Inadmissible");
  EXPECT_THAT(Message(), HasSubstr("metadata.labels[kueue.x-k8s.io/priority-class]: the cluster "
                                   "has no WorkloadPriorityClass high"));
  EXPECT_TRUE(cluster_.workloads.empty());
}

TEST_F(QueueTest, WithoutItsLabelAJobThatWaitsBeginsAtOnce) {
  cluster_.Settle();
  cluster_.Change([](ObservedJob& job) { job.job.metadata.labels.clear(); });
  cluster_.Settle();
  EXPECT_TRUE(cluster_.workloads.empty());
  EXPECT_EQ(Queued(), "False/NotQueued");
  EXPECT_EQ(cluster_.pods.size(), 5u);
}

TEST_F(QueueTest, AGangThatStartsAnewIsNotReadyMeanwhile) {
  Train();
  cluster_.Exit("vit-gpu-0", 1);
  cluster_.Exit("vit-gpu-1", 1);
  cluster_.Settle();
  EXPECT_EQ(cluster_.status().attempt, 2);
  EXPECT_EQ(cluster_.GangState("PodsReady"), "False/WaitForRecovery");
  EXPECT_EQ(Queued(), "False/Admitted");
  EXPECT_EQ(cluster_.CountOf("release vit-gang"), 0u);
}

}  // namespace
}  // namespace hetero::plan
