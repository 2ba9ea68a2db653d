#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using api::CleanPodPolicy;
using api::ConditionType;
using std::chrono::seconds;
using ::testing::HasSubstr;
using State = HeadReport::State;

std::string Words(bool succeeded) {
  return api::VerdictToJson(
      {.succeeded = succeeded, .message = "epoch 3 diverged", .result = {.loss = 0.5}});
}

TEST(EndingTest, LastWordsOfTheHeadsPod) {
  struct Case {
    const char* name;
    int exit_code;
    std::string message;
    const char* succeeded;
    const char* failed;
  };
  const std::vector<Case> cases = {
      {"success", 0, Words(true), "True/TrainingFinished", "False/TrainingFinished"},
      {"silent success", 0, "", "True/TrainingFinished", "False/TrainingFinished"},
      {"failure", 1, Words(false), "False/TrainingFailed", "True/TrainingFailed"},
      {"crash", 1, "terminate called", "Unknown/NotFinished", "Unknown/NotFinished"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    ModelCluster cluster{Job()};
    cluster.RunJob();
    cluster.head.reset();
    cluster.Exit("vit-head-0", one.exit_code, "", one.message);
    cluster.Pass();
    EXPECT_EQ(cluster.State(ConditionType::kSucceeded), one.succeeded);
    EXPECT_EQ(cluster.State(ConditionType::kFailed), one.failed);
  }
}

TEST(EndingTest, RankZeroSpeaksForAHeadThatIsGone) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.Exit("vit-gpu-0", 0, "", Words(true));
  cluster.Exit("vit-gpu-1", 0);
  cluster.Pass();
  EXPECT_FALSE(cluster.status().finished());  // the head lives and will say it
  cluster.Exit("vit-head-0", 137, "OOMKilled");
  cluster.Pass();
  EXPECT_TRUE(cluster.status().Is(ConditionType::kSucceeded));
  EXPECT_EQ(cluster.status().result->loss, 0.5);
}

TEST(EndingTest, HeadToldToEndProvesNoFailure) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.Change("vit-head-0", [](ObservedPod& pod) { pod.disrupted = true; });
  cluster.Exit("vit-head-0", 1, "", Words(false));
  cluster.Settle();
  EXPECT_FALSE(cluster.status().finished());
  EXPECT_EQ(cluster.status().restarts, 0);
  EXPECT_EQ(cluster.Pod("vit-head-0").phase, "Pending");
}

TEST(EndingTest, FailureReportedByTheHead) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.HeadSays(State::kFailed);
  cluster.report().verdict = api::Verdict{.message = "loss is not finite"};
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/TrainingFailed");
  EXPECT_EQ(cluster.Condition(ConditionType::kFailed).message, "loss is not finite");
}

TEST(EndingTest, EventOfTheEnd) {
  const auto end_of = [](ModelCluster& cluster) {
    const Plan plan = cluster.Pass();
    return plan.events.empty() ? Event() : plan.events.back();
  };
  ModelCluster succeeded{Job()};
  succeeded.RunJob();
  succeeded.Exit("vit-head-0", 0, "",
                 api::VerdictToJson({.succeeded = true, .message = "4 epochs\nloss 0.5"}));
  const Event success = end_of(succeeded);
  EXPECT_FALSE(success.warning);
  EXPECT_EQ(success.reason, "JobSucceeded");
  EXPECT_EQ(success.note, "4 epochs");

  ModelCluster failed{Job()};
  failed.RunJob();
  failed.Exit("vit-head-0", 1, "", Words(false));
  const Event failure = end_of(failed);
  EXPECT_TRUE(failure.warning);
  EXPECT_EQ(failure.reason, "JobFailed");
  EXPECT_EQ(failure.note, "TrainingFailed: epoch 3 diverged");

  ModelCluster invalid{Job()};
  invalid.Change([](ObservedJob& job) { job.errors = {{"spec.roles", "there is no head"}}; });
  const Event refusal = end_of(invalid);
  EXPECT_TRUE(refusal.warning);
  EXPECT_EQ(refusal.reason, "InvalidSpec");
  EXPECT_EQ(refusal.note, "spec.roles: there is no head");
}

TEST(EndingTest, ActiveDeadline) {
  ModelCluster cluster{Job().ActiveDeadline(100)};
  cluster.RunJob();
  EXPECT_EQ(cluster.Pass().requeue_after, seconds(90));
  cluster.Advance(seconds(90));
  cluster.Pass();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/DeadlineExceeded");
}

TEST(EndingTest, StartupDeadlineNamesWhoIsMissingAndWhy) {
  ModelCluster cluster{Job().StartupDeadline(60)};
  cluster.Settle();
  cluster.Start("vit-head-0");
  cluster.Start("vit-gpu-0");
  cluster.HeadSays(State::kWaiting);
  cluster.Change("vit-gpu-1", [](ObservedPod& pod) {
    pod.waiting_reason = "Unschedulable";
    pod.waiting_message = "0/3 nodes are available";
  });
  cluster.Change("vit-cpu-0", [](ObservedPod& pod) { pod.waiting_reason = "ImagePullBackOff"; });
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kRegistered), "False/ImagePullFailed");
  EXPECT_EQ(cluster.status().registered, "1/3");
  EXPECT_EQ(cluster.Pass().requeue_after, seconds(60));
  cluster.Advance(seconds(60));
  cluster.Pass();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/StartupDeadlineExceeded");
  EXPECT_THAT(cluster.Condition(ConditionType::kFailed).message,
              HasSubstr("missing: vit-cpu-0: ImagePullBackOff; "
                        "vit-gpu-1: Unschedulable: 0/3 nodes are available"));
}

TEST(EndingTest, TrainerThatDoesNotComeBack) {
  ModelCluster cluster{Job().StartupDeadline(60)};
  cluster.RunJob();
  cluster.Exit("vit-gpu-1", 1);
  cluster.HeadSays(State::kWaiting);
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kRegistered), "True/AllRegistered");
  cluster.Advance(seconds(61));
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/StartupDeadlineExceeded");
  EXPECT_THAT(cluster.Condition(ConditionType::kFailed).message, HasSubstr("vit-gpu-1"));
}

TEST(EndingTest, CleanPodPolicies) {
  const auto finished = [](CleanPodPolicy policy) {
    ModelCluster cluster{Job().CleanPods(policy)};
    cluster.RunJob();
    cluster.Exit("vit-head-0", 0, "", Words(true));
    cluster.Settle();
    return cluster;
  };
  ModelCluster none = finished(CleanPodPolicy::kNone);
  EXPECT_EQ(none.pods.size(), 4u);
  EXPECT_NE(none.service, nullptr);

  ModelCluster running = finished(CleanPodPolicy::kRunning);
  EXPECT_EQ(running.service, nullptr);
  EXPECT_FALSE(running.Pod("vit-gpu-0").deletion_time);
  EXPECT_EQ(running.Pass().requeue_after, running.settings.pod_kill_grace);
  running.Advance(seconds(30));
  running.Settle();
  EXPECT_TRUE(running.Pod("vit-gpu-0").deletion_time);
  for (const char* pod : {"vit-cpu-0", "vit-gpu-0", "vit-gpu-1"}) running.Vanish(pod);
  running.Settle();
  EXPECT_TRUE(running.Has("vit-head-0"));
  EXPECT_TRUE(running.secret);

  ModelCluster all = finished(CleanPodPolicy::kAll);
  for (const char* pod : {"vit-cpu-0", "vit-gpu-0", "vit-gpu-1"}) all.Vanish(pod);
  EXPECT_TRUE(all.Empty());
}

TEST(EndingTest, TimeToLive) {
  ModelCluster cluster{Job().Ttl(50).CleanPods(CleanPodPolicy::kNone)};
  cluster.RunJob();
  cluster.Exit("vit-head-0", 0);
  cluster.Pass();
  EXPECT_EQ(cluster.Pass().requeue_after, seconds(50));
  cluster.Advance(seconds(50));
  cluster.Pass();
  EXPECT_TRUE(cluster.job_deleted);
}

TEST(EndingTest, FinishedJobsStayAsTheyAre) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.Exit("vit-head-0", 0);
  cluster.Settle();
  cluster.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = true; });
  cluster.HeadSays(State::kFailed);
  cluster.report().verdict = api::Verdict{};
  cluster.Settle();
  EXPECT_TRUE(cluster.status().Is(ConditionType::kSucceeded));
  EXPECT_FALSE(cluster.status().Is(ConditionType::kFailed));
  EXPECT_FALSE(cluster.status().Is(ConditionType::kSuspended));
}

}  // namespace
}  // namespace hetero::plan
