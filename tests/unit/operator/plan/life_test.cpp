#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/labels.h"
#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using State = HeadReport::State;

TEST(LifeTest, FirstPassWritesAllConditionsAndCreatesTheServiceAlone) {
  ModelCluster cluster{Job()};
  const Plan plan = MakePlan(cluster.Look(), cluster.settings, cluster.now);
  ASSERT_EQ(plan.status.conditions.size(), static_cast<size_t>(api::kConditionTypes));
  for (int i = 0; i < api::kConditionTypes; ++i) {
    EXPECT_EQ(plan.status.conditions[i].type, static_cast<ConditionType>(i));
    EXPECT_EQ(plan.status.conditions[i].observed_generation, 1);
    EXPECT_NE(plan.status.conditions[i].status, api::ConditionStatus::kTrue);
    EXPECT_FALSE(plan.status.conditions[i].reason.empty());
  }
  EXPECT_EQ(plan.status.observed_generation, 1);
  EXPECT_EQ(plan.status.start_time, cluster.now);
  EXPECT_EQ(plan.status.attempt, 1);
  EXPECT_TRUE(plan.write_status && plan.status_is_urgent);
  ASSERT_EQ(plan.stages.size(), 1u);
  ASSERT_EQ(plan.stages[0].size(), 1u);
  EXPECT_EQ(std::get<CreateChild>(plan.stages[0][0]).kind, ChildKind::kService);
}

TEST(LifeTest, ConfigBeforeAllPodsAtOnce) {
  ModelCluster cluster{Job()};
  cluster.Pass();
  const Plan plan = cluster.Pass();
  ASSERT_EQ(plan.stages.size(), 2u);
  ASSERT_EQ(plan.stages[0].size(), 2u);
  EXPECT_TRUE(std::holds_alternative<CreateTrust>(plan.stages[0][0]));
  EXPECT_EQ(std::get<CreateChild>(plan.stages[0][1]).kind, ChildKind::kNetworkPolicy);
  EXPECT_EQ(plan.stages[1].size(), 4u);
  const auto& head = std::get<CreatePod>(plan.stages[1][0]);
  EXPECT_EQ(head.role, 0);
  EXPECT_EQ(head.origin->head_address, cluster.service->cluster_ip + ":7070");
}

TEST(LifeTest, JobThatEndsBeforeItIsSeenToBegin) {
  ModelCluster cluster{Job()};
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kRegistered), "False/WaitingForPods");
  cluster.StartAll();
  cluster.Exit("vit-head-0", 0);
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kSucceeded), "True/TrainingFinished");
  EXPECT_EQ(cluster.State(ConditionType::kRegistered), "True/AllRegistered");
  EXPECT_EQ(cluster.Condition(ConditionType::kRegistered).message, "");
}

TEST(LifeTest, HealthyJobFromNothingToNothing) {
  ModelCluster cluster{Job()};
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kPodsCreated), "True/AllCreated");
  EXPECT_EQ(cluster.State(ConditionType::kRegistered), "False/WaitingForPods");
  EXPECT_EQ(cluster.status().head_address, cluster.service->cluster_ip + ":7070");
  EXPECT_FALSE(cluster.Pass().follow);

  cluster.Start("vit-head-0");
  const Plan plan = cluster.Pass();
  ASSERT_TRUE(plan.follow);
  EXPECT_EQ(plan.follow->address, cluster.service->cluster_ip + ":7071");
  EXPECT_EQ(plan.follow->ca_pem, cluster.config_map->ca_pem);
  EXPECT_EQ(plan.follow->pod_uid, cluster.Pod("vit-head-0").uid);
  EXPECT_EQ(plan.follow->replicas.at("head"), 1);
  EXPECT_EQ(plan.follow->processes, 4);
  EXPECT_FALSE(plan.status_is_urgent);

  cluster.StartAll();
  cluster.Advance(seconds(3));
  cluster.HeadSays(State::kRunning);
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kRegistered), "True/AllRegistered");
  EXPECT_EQ(cluster.State(ConditionType::kRunning), "True/TrainingStarted");
  EXPECT_EQ(cluster.Condition(ConditionType::kRunning).last_transition_time, cluster.now);
  EXPECT_EQ(cluster.status().registered, "3/3");

  cluster.HeadSays(State::kSucceeded);
  cluster.report().progress = api::JobProgress{.step = 7};
  cluster.report().verdict = api::Verdict{.succeeded = true, .result = {.steps = 7}};
  cluster.Advance(seconds(3));
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kSucceeded), "True/TrainingFinished");
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "False/TrainingFinished");
  EXPECT_EQ(cluster.State(ConditionType::kRunning), "False/Finished");
  EXPECT_EQ(cluster.status().result->steps, 7);
  EXPECT_EQ(cluster.status().progress->step, 7);
  EXPECT_EQ(cluster.status().completion_time, cluster.now);
  for (const char* pod : {"vit-head-0", "vit-cpu-0", "vit-gpu-0", "vit-gpu-1"}) cluster.Vanish(pod);
  cluster.Settle();
  EXPECT_TRUE(cluster.Empty());
  EXPECT_FALSE(cluster.Pass().requeue_after);

  // The budget of API writes; Secret and ConfigMap are one call here.
  EXPECT_THAT(cluster.events, ElementsAre("JobStarted", "JobSucceeded"));
  EXPECT_EQ(cluster.CountOf("delete pods"), 1u);
  EXPECT_LE(cluster.calls.size() + 1 + cluster.events.size(), 24u);
  // The count of status writes that cannot wait: begin, created, running, succeeded.
  EXPECT_LE(cluster.CountOf("status"), 6u);
}

TEST(LifeTest, JobsOfOthersAndDeletedJobsAreLeftAlone) {
  for (const char* manager : {"kueue.x-k8s.io/multikueue", "example.com/other"}) {
    ModelCluster other{Job().ManagedBy(manager)};
    EXPECT_TRUE(other.Pass().idle());
    ModelCluster of_old{Job().ManagedByOfOld(manager)};
    EXPECT_TRUE(of_old.Pass().idle());
  }
  ModelCluster ours{Job().ManagedBy(api::kManagedBySelf)};
  EXPECT_FALSE(ours.Pass().idle());
  ModelCluster ours_of_old{Job().ManagedByOfOld(api::kManagedBySelf)};
  EXPECT_FALSE(ours_of_old.Pass().idle());
  ModelCluster the_new_one_counts{Job().ManagedBy("a/b").ManagedByOfOld(api::kManagedBySelf)};
  EXPECT_TRUE(the_new_one_counts.Pass().idle());
  ModelCluster going{Job()};
  going.Change([](ObservedJob& job) { job.deleting = true; });
  const Plan plan = going.Pass();
  EXPECT_TRUE(plan.idle());
  EXPECT_TRUE(plan.events.empty());
}

TEST(LifeTest, InvalidSpecFailsBeforeAnythingIsCreated) {
  ModelCluster cluster{Job()};
  cluster.Change([](ObservedJob& job) {
    job.errors = {{"spec.roles[1].replicas", "must be at least 0"}};
  });
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/InvalidSpec");
  EXPECT_THAT(cluster.Condition(ConditionType::kFailed).message,
              HasSubstr("spec.roles[1].replicas: must be at least 0"));
  EXPECT_THAT(cluster.calls, ElementsAre("status"));
  EXPECT_THAT(cluster.events, ElementsAre("InvalidSpec"));
}

TEST(LifeTest, WhatThisVersionCannotDoFailsBeforeAnythingIsCreated) {
  ModelCluster cluster{Job()};
  cluster.Change([](ObservedJob& job) { job.job.spec.training.model = {.name = "resnet101"}; });
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/InvalidSpec");
  EXPECT_THAT(cluster.Condition(ConditionType::kFailed).message,
              HasSubstr("spec.training.model.name: model \"resnet101\" is not supported yet; "));
  EXPECT_THAT(cluster.calls, ElementsAre("status"));
}

TEST(LifeTest, WhatIsUnprotectedIsSaid) {
  const auto message = [](api::Switch tls, api::Switch policy) {
    ModelCluster cluster{Job()};
    cluster.ChangeSpec([&](api::Spec& spec) {
      spec.network.tls = tls;
      spec.network.network_policy = policy;
    });
    cluster.Settle();
    EXPECT_EQ(cluster.State(ConditionType::kPodsCreated), "True/AllCreated");
    return cluster.Condition(ConditionType::kPodsCreated).message;
  };
  constexpr auto kOn = api::Switch::kEnabled, kOff = api::Switch::kDisabled;
  EXPECT_EQ(message(kOn, kOn), "");
  EXPECT_THAT(message(kOff, kOn), ::testing::HasSubstr("network.tls is Disabled"));
  EXPECT_THAT(message(kOn, kOff), ::testing::HasSubstr("network.networkPolicy is Disabled"));
  EXPECT_THAT(message(kOff, kOff), ::testing::HasSubstr("in plain text"));
}

TEST(LifeTest, ScaledCpuRole) {
  ModelCluster cluster{Job().Cpus(2)};
  cluster.RunJob();
  cluster.ChangeSpec([](api::Spec& spec) { spec.roles[1].replicas = 3; });
  cluster.Settle();
  EXPECT_TRUE(cluster.Has("vit-cpu-2"));
  EXPECT_EQ(cluster.State(ConditionType::kPodsCreated), "True/AllCreated");
  EXPECT_EQ(cluster.status().observed_generation, 2);
  cluster.ChangeSpec([](api::Spec& spec) { spec.roles[1].replicas = 1; });
  cluster.Settle();
  EXPECT_FALSE(cluster.Has("vit-cpu-2"));
  EXPECT_TRUE(cluster.Pod("vit-cpu-1").deletion_time);
  EXPECT_EQ(cluster.status().restarts, 0);
}

TEST(LifeTest, QuotaIsReportedAndOvercome) {
  ModelCluster cluster{Job()};
  cluster.create_error =
      CreateError{CreateError::Kind::kQuotaExceeded, "pods vit-gpu-0 is forbidden"};
  for (int i = 0; i < 4; ++i) cluster.Pass();
  EXPECT_EQ(cluster.State(ConditionType::kPodsCreated), "False/QuotaExceeded");
  EXPECT_EQ(cluster.Condition(ConditionType::kPodsCreated).message, "pods vit-gpu-0 is forbidden");
  EXPECT_EQ(cluster.Condition(ConditionType::kRegistered).message,
            "vit-head-0: not created: pods vit-gpu-0 is forbidden; vit-cpu-0: not created; "
            "vit-gpu-0: not created; vit-gpu-1: not created")
      << "why is said once";
  cluster.create_error.reset();
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kPodsCreated), "True/AllCreated");
}

TEST(LifeTest, LastTransitionMovesWithTheStatusOnly) {
  ModelCluster cluster{Job()};
  cluster.Settle();
  const base::WallTime then = cluster.Condition(ConditionType::kRegistered).last_transition_time;
  cluster.Advance(seconds(9));
  cluster.Change("vit-gpu-0", [](ObservedPod& pod) { pod.waiting_reason = "Unschedulable"; });
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kRegistered), "False/Unschedulable");
  EXPECT_EQ(cluster.Condition(ConditionType::kRegistered).last_transition_time, then);
}

}  // namespace
}  // namespace hetero::plan
