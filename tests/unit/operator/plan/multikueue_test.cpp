// Jobs that MultiKueue hands to another cluster, and its copies of them there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/labels.h"
#include "tests/unit/operator/plan/queue_fixture.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = HeadReport::State;

class MultiKueueTest : public QueueTest {
 protected:
  explicit MultiKueueTest(
      Job job = Job().Cpus(2).Queue("team").ManagedBy(api::kManagedByMultiKueue))
      : QueueTest(job) {}
};

TEST_F(MultiKueueTest, ThereIsTheWorkloadAndNothingElse) {
  cluster_.Settle();
  EXPECT_THAT(cluster_.calls, ElementsAre("create vit-gang"));
  EXPECT_EQ(cluster_.Gang().owner_uid, "0123456789-job");
  cluster_.Admit();
  cluster_.Settle();
  cluster_.Advance(std::chrono::hours(1));
  EXPECT_EQ(cluster_.Settle(), 0);
  EXPECT_THAT(cluster_.calls, ElementsAre("create vit-gang"));
  EXPECT_THAT(cluster_.events, IsEmpty());
  EXPECT_EQ(cluster_.status(), api::JobStatus()) << "the status is MultiKueue's";
}

TEST_F(MultiKueueTest, TheOldFieldMeansTheSame) {
  ModelCluster of_old{Job().Cpus(2).Queue("team").ManagedByOfOld(api::kManagedByMultiKueue)};
  of_old.queues.support = ObservedQueues::Support::kServed;
  of_old.Settle();
  EXPECT_THAT(of_old.calls, ElementsAre("create vit-gang"));
}

// The status that MultiKueue copies here is that of the copy, with attempts and conditions.
TEST_F(MultiKueueTest, WhatMultiKueueWritesIsLeftAlone) {
  cluster_.Settle();
  cluster_.Admit();
  cluster_.Change([](ObservedJob& job) {
    job.status.attempt = 3;
    job.status.start_time = base::WallTime();
    job.status.conditions.push_back(
        {.type = ConditionType::kRunning, .status = api::ConditionStatus::kTrue});
  });
  EXPECT_EQ(cluster_.Settle(), 0);
  cluster_.Change([](ObservedJob& job) {
    job.job.spec.run_policy.ttl_seconds_after_finished = 0;
    job.status.completion_time = base::WallTime();
    job.status.conditions.push_back(
        {.type = ConditionType::kSucceeded, .status = api::ConditionStatus::kTrue});
  });
  EXPECT_EQ(cluster_.Settle(), 0);
  EXPECT_FALSE(cluster_.job_deleted);
}

TEST_F(MultiKueueTest, AnEvictionGivesTheQuotaBack) {
  cluster_.Settle();
  cluster_.Admit();
  cluster_.Evict("Preempted", kPreempted);
  cluster_.Settle();
  EXPECT_EQ(cluster_.CountOf("release vit-gang"), 1u);
  EXPECT_EQ(cluster_.GangState("Requeued"), "True/Preempted");
  cluster_.Admit();
  EXPECT_EQ(cluster_.Settle(), 0);
}

TEST_F(MultiKueueTest, ASuspendedJobHasNoWorkload) {
  cluster_.Settle();
  cluster_.Admit();
  cluster_.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = true; });
  cluster_.Settle();
  EXPECT_THAT(cluster_.workloads, IsEmpty());
  cluster_.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = false; });
  cluster_.Settle();
  EXPECT_EQ(cluster_.CountOf("create vit-gang"), 2u);
}

TEST_F(MultiKueueTest, AJobThatIsNoLongerAsItWasQueuedIsQueuedAgain) {
  cluster_.Settle();
  cluster_.ChangeSpec([](api::Spec& spec) { spec.roles[1].replicas = 3; });
  cluster_.Settle();
  EXPECT_EQ(cluster_.CountOf("create vit-gang"), 2u);
  EXPECT_EQ(cluster_.Gang().CountOf("cpu"), 3);
  cluster_.Admit();
  cluster_.ChangeSpec([](api::Spec& spec) { spec.roles[1].replicas = 4; });
  EXPECT_EQ(cluster_.Settle(), 0) << "while it is admitted it stays as it is";
}

TEST_F(MultiKueueTest, WhatHindersTheWorkloadIsTold) {
  cluster_.Change(
      [](ObservedJob& job) { job.job.metadata.labels[api::kQueuePriorityLabel] = "missing"; });
  Plan plan = cluster_.Pass();
  ASSERT_EQ(plan.events.size(), 1u);
  EXPECT_EQ(plan.events[0].reason, "NotQueued");
  EXPECT_THAT(plan.events[0].note, HasSubstr("no WorkloadPriorityClass missing"));
  EXPECT_TRUE(plan.requeue_after.has_value());
  cluster_.queues.priorities["missing"] = 5;
  cluster_.Change([](ObservedJob& job) {
    job.errors = {{"spec.roles[1].replicas", "must be at least 0"}};
  });
  plan = cluster_.Pass();
  ASSERT_EQ(plan.events.size(), 1u);
  EXPECT_THAT(plan.events[0].note, HasSubstr("spec.roles[1].replicas: must be at least 0"));
  EXPECT_THAT(cluster_.calls, IsEmpty());
  cluster_.Change([](ObservedJob& job) { job.errors.clear(); });
  cluster_.Settle();
  EXPECT_THAT(cluster_.calls, ElementsAre("create vit-gang"));
}

TEST_F(MultiKueueTest, WithoutKueueThereIsNothing) {
  cluster_.queues.support = ObservedQueues::Support::kMissing;
  EXPECT_TRUE(cluster_.Pass().idle());
  cluster_.queues.support = ObservedQueues::Support::kOff;
  EXPECT_TRUE(cluster_.Pass().idle());
}

// In the worker cluster.
class CopyTest : public QueueTest {
 protected:
  CopyTest()
      : QueueTest(Job()
                      .Cpus(2)
                      .Queue("team")
                      .Ttl(0)
                      .Label(api::kQueuePriorityLabel, "high")
                      .Label(api::kPrebuiltWorkloadLabel, "from-afar")
                      .Label(api::kMultiKueueOriginLabel, "multikueue")) {}
  // Made by MultiKueue, and admitted before there was the job.
  void PutPrebuilt(int cpus = 2) {
    ObservedWorkload made;
    made.name = "from-afar";
    made.uid = "workload-afar";
    made.resource_version = "1";
    made.queue = "team";
    made.priority_class = "high";
    made.holds_quota = true;
    made.pod_sets = {{"head", 1}, {"cpu", cpus}, {"gpu", 2}};
    for (const auto& [name, count] : made.pod_sets) {
      made.assignments.push_back({.name = name, .flavors = {"on-demand"}});
    }
    for (const char* type : {"QuotaReserved", "Admitted"}) {
      made.conditions.push_back({.type = type, .status = "True", .reason = type});
    }
    cluster_.prebuilt["from-afar"] = std::make_shared<ObservedWorkload>(made);
  }
};

TEST_F(CopyTest, TheWorkloadThatWasMadeForItIsTakenOver) {
  PutPrebuilt();
  cluster_.Settle();
  EXPECT_EQ(cluster_.CountOf("adopt from-afar"), 1u);
  EXPECT_EQ(cluster_.CountOf("create vit-gang"), 0u);
  EXPECT_EQ(Queued(), "False/Admitted");
  EXPECT_EQ(cluster_.pods.size(), 5u);
  EXPECT_EQ(cluster_.placements.at("vit-gpu-0")->workload, "from-afar");
  cluster_.RunJob();
  cluster_.HeadSays(State::kSucceeded);
  cluster_.Settle();
  cluster_.VanishTerminating();
  cluster_.Settle();
  EXPECT_TRUE(cluster_.Workload("from-afar").Is("Finished"));
  cluster_.Advance(std::chrono::hours(1));
  cluster_.Settle();
  EXPECT_FALSE(cluster_.job_deleted) << "MultiKueue removes it, once it has copied the status";
}

TEST_F(CopyTest, WithoutTheWorkloadItWaitsAndMakesNone) {
  cluster_.Pass();
  cluster_.Pass();
  EXPECT_EQ(Queued(), "True/Inadmissible");
  EXPECT_THAT(Message(), HasSubstr("from-afar cannot be taken over"));
  EXPECT_TRUE(cluster_.workloads.empty());
  EXPECT_TRUE(cluster_.pods.empty());
  PutPrebuilt(3);
  cluster_.Pass();
  EXPECT_TRUE(cluster_.workloads.empty()) << "it is for three CPU workers";
  PutPrebuilt();
  cluster_.Settle();
  EXPECT_EQ(cluster_.pods.size(), 5u);
}

// What is not the operator's to make anew is not the operator's to delete.
TEST_F(CopyTest, AWorkloadThatFitsNoMoreIsLeftToWhoMadeIt) {
  PutPrebuilt();
  cluster_.create_error = CreateError{.message = "not yet"};
  cluster_.Settle();
  ASSERT_EQ(cluster_.pods.size(), 5u);
  cluster_.RunJob();
  cluster_.Evict("Preempted", kPreempted, "from-afar");
  cluster_.Settle();
  cluster_.HeadSays(State::kStopped);
  cluster_.Settle();
  cluster_.VanishTerminating();
  cluster_.ChangeSpec([](api::Spec& spec) { spec.roles[1].replicas = 4; });
  cluster_.Settle();
  EXPECT_EQ(Queued(), "True/Inadmissible");
  EXPECT_THAT(Message(), HasSubstr("whoever made it has to make it anew"));
  EXPECT_TRUE(cluster_.workloads.contains("from-afar"));
  EXPECT_TRUE(cluster_.pods.empty());
}

}  // namespace
}  // namespace hetero::plan
