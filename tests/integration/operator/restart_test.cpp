#include <gtest/gtest.h>

#include "tests/integration/operator/restart_fixture.h"

namespace hetero::testing {
namespace {

TEST_F(Restart, CpuPodFailureReplacesThatPodOnly) {
  TestNamespace space("cpu");
  JobUnderTest job(space.name(), Endless("job"));
  ASSERT_TRUE(job.WaitIs("Running"));
  const int64_t generation = World::Get().FakeHead(space.name(), "job").value("generation", 0);
  const auto before = Uids(job);
  job.EndPod("cpu", 1, 3, "segmentation fault in Decode");
  ExpectReplaced(job, before, {"cpu-1"});
  const json status = job.Status();
  EXPECT_EQ(status["restarts"], 1) << status.dump(1);
  EXPECT_EQ(status["attempt"], 1);
  EXPECT_EQ(status["firstFailure"]["exitCode"], 3);
  EXPECT_EQ(World::Get().FakeHead(space.name(), "job").value("generation", 0), generation);
  EXPECT_TRUE(job.Is("Running"));
}

TEST_F(Restart, GpuPodFailureRaisesTheGeneration) {
  TestNamespace space("gpu");
  JobUnderTest job(space.name(), Endless("job"));
  ASSERT_TRUE(job.WaitIs("Running"));
  const int64_t generation = World::Get().FakeHead(space.name(), "job").value("generation", 0);
  const auto before = Uids(job);
  job.EndPod("gpu", 1, 1, "NCCL error");
  ExpectReplaced(job, before, {"gpu-1"});
  WaitFor(
      "a new generation",
      [&] {
        return World::Get().FakeHead(space.name(), "job").value("generation", 0) > generation;
      },
      seconds(30), [&] { return job.Describe(); });
  const json exits = World::Get().FakeHead(space.name(), "job").value("exits", json::array());
  EXPECT_EQ(exits.size(), 1u) << exits << " the head is told of the exit once";
  EXPECT_EQ(job.Status()["attempt"], 1);
  EXPECT_EQ(job.Status()["restarts"], 1);
}

TEST_F(Restart, HeadPodFailureReplacesTheHeadOnly) {
  TestNamespace space("head");
  JobUnderTest job(space.name(), Endless("job"));
  ASSERT_TRUE(job.WaitIs("Running"));
  const auto before = Uids(job);
  job.EndPod("head", 0, 139);
  ExpectReplaced(job, before, {"head-0"});
  EXPECT_TRUE(job.WaitIs("Running"));
}

TEST_F(Restart, GangScopeRaisesTheAttempt) {
  TestNamespace space("gang");
  json manifest = Endless("job");
  RoleOf(manifest, "gpu")["restartScope"] = "Gang";
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  const auto before = Uids(job);
  job.EndPod("gpu", 0, 1);
  ExpectReplaced(job, before, {"head-0", "cpu-0", "cpu-1", "gpu-0", "gpu-1"});
  WaitFor(
      "it runs again", [&] { return job.Is("Running") && job.Status()["attempt"] == 2; },
      seconds(60), [&] { return job.Describe(); });
  EXPECT_EQ(job.Status()["restarts"], 1);
  EXPECT_EQ(job.Reason("Restarting"), "Completed");
}

TEST_F(Restart, AllTrainersGoneRestartsTheGangOnce) {
  TestNamespace space("collapse");
  JobUnderTest job(space.name(), Endless("job"));
  ASSERT_TRUE(job.WaitIs("Running"));
  operator_->Kill();  // so that both failures are seen in one look
  job.EndPod("gpu", 0, 1);
  job.EndPod("gpu", 1, 1);
  WaitFor("both ended", [&] {
    return job.Pod("gpu", 0)["status"]["phase"] == "Failed" &&
           job.Pod("gpu", 1)["status"]["phase"] == "Failed";
  });
  operator_->Start();
  WaitFor(
      "second attempt runs", [&] { return job.Is("Running") && job.Status()["attempt"] == 2; },
      seconds(60), [&] { return job.Describe(); });
  EXPECT_EQ(job.Status()["restarts"], 1) << "one collapse is one restart";
}

TEST_F(Restart, BudgetEndsTheJob) {
  TestNamespace space("budget");
  json manifest = Endless("job");
  manifest["spec"]["runPolicy"]["maxRestarts"] = 2;
  AnnotatePods(manifest, "cpu", "fake.hetero.dev/exit-code", "9");
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Failed"));
  EXPECT_EQ(job.Reason("Failed"), "MaxRestartsExceeded");
  EXPECT_EQ(job.Status()["firstFailure"]["exitCode"], 9);
  EXPECT_TRUE(job.WaitGone());
}

TEST_F(Restart, ExitCodeRuleFailsAtOnce) {
  TestNamespace space("rule");
  json manifest = Endless("job");
  RoleOf(manifest, "gpu")["failureRules"] = json::array(
      {{{"action", "FailJob"}, {"onExitCodes", {{"operator", "In"}, {"values", {2, 3}}}}}});
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  job.EndPod("gpu", 0, 3, "wrong configuration");
  ASSERT_TRUE(job.WaitIs("Failed"));
  EXPECT_EQ(job.Reason("Failed"), "RuleMatched");
  EXPECT_TRUE(job.WaitGone());
}

TEST_F(Restart, IgnoreRuleLeavesThePodDead) {
  TestNamespace space("ignore");
  json manifest = Endless("job");
  RoleOf(manifest, "cpu")["failureRules"] =
      json::array({{{"action", "Ignore"}, {"onReason", "OOMKilled"}}});
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  const std::string uid = job.PodUid("cpu", 0);
  job.EndPod("cpu", 0, 137, "", "OOMKilled");
  std::this_thread::sleep_for(seconds(3));
  EXPECT_EQ(job.PodUid("cpu", 0), uid);
  EXPECT_EQ(job.Status().value("restarts", 0), 0);
  EXPECT_TRUE(job.Is("Running"));
}

TEST_F(Restart, OomIsToldAndCounted) {
  TestNamespace space("oom");
  JobUnderTest job(space.name(), Endless("job"));
  ASSERT_TRUE(job.WaitIs("Running"));
  const auto before = Uids(job);
  job.EndPod("cpu", 0, 137, "", "OOMKilled");
  ExpectReplaced(job, before, {"cpu-0"});
  const json status = job.Status();
  EXPECT_EQ(status["firstFailure"]["reason"], "OOMKilled") << status.dump(1);
  EXPECT_EQ(status["firstFailure"]["exitCode"], 137);
  EXPECT_EQ(status["restarts"], 1);
}

TEST_F(Restart, EvictionCostsNothing) {
  TestNamespace space("evict");
  JobUnderTest job(space.name(), Endless("job"));
  ASSERT_TRUE(job.WaitIs("Running"));
  auto before = Uids(job);
  job.EvictPod("cpu", 0);
  ExpectReplaced(job, before, {"cpu-0"});
  before = Uids(job);
  plane_.MustKubectl({"delete", "pod", "job-gpu-1", "-n", space.name(), "--wait=false"});
  ExpectReplaced(job, before, {"gpu-1"});
  EXPECT_EQ(job.Status().value("restarts", 0), 0) << job.Status().dump(1);
}

TEST_F(Restart, NodeThatStaysAwayLosesItsPods) {
  TestNamespace space("node");
  json manifest = Endless("job");
  // CPU workers anywhere but on the node of the others: so not every trainer is lost with them.
  const json here = {{"kubernetes.io/hostname", "node-2"}};
  const json elsewhere = {
      {"nodeAffinity",
       {{"requiredDuringSchedulingIgnoredDuringExecution",
         {{"nodeSelectorTerms",
           json::array({{{"matchExpressions", json::array({{{"key", "kubernetes.io/hostname"},
                                                            {"operator", "NotIn"},
                                                            {"values", {"node-2"}}}})}}})}}}}}};
  for (const char* role : {"head", "cpu", "gpu"}) {
    json& spec = RoleOf(manifest, role)["template"]["spec"];
    spec["containers"] = json::array({{{"name", "runtime"}}});
    if (role == std::string("cpu")) {
      spec["affinity"] = elsewhere;
    } else {
      spec["nodeSelector"] = here;
    }
  }
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  const auto before = Uids(job);
  const std::string node = job.Pod("cpu", 0)["spec"]["nodeName"];
  std::set<std::string> there = {"cpu-0"};
  if (job.Pod("cpu", 1)["spec"]["nodeName"] == node) there.insert("cpu-1");
  plane_.LoseNode(node);
  ExpectReplaced(job, before, there);
  EXPECT_EQ(job.Status().value("restarts", 0), 0) << job.Status().dump(1);
  EXPECT_EQ(job.Status()["attempt"], 1);
  EXPECT_EQ(job.Status()["firstFailure"]["reason"], "NodeLost");
  plane_.BringBackNode(node);
}

}  // namespace
}  // namespace hetero::testing
