#include <gtest/gtest.h>

#include "tests/integration/operator/support/world.h"

// Failures, deadlines and suspension on the real control plane: what is recreated, what it costs
// and what is said of it.
namespace hetero::testing {
namespace {

using std::chrono::seconds;

class Restart : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    World::Get();
    operator_ =
        new OperatorProcess({.arguments = {"--node-lost-grace", "5s", "--pod-kill-grace", "3s"}});
    WaitFor("the operator is ready", [] { return operator_->ready(); });
  }
  static void TearDownTestSuite() { delete operator_; }

  // Runs until told otherwise.
  static json Endless(const std::string& name, int cpu = 2, int gpu = 2) {
    return MakeJob(name, {{"steps", 1000000}, {"stepMillis", 20}}, cpu, gpu);
  }
  // Uids of all four or five pods, by name.
  static std::map<std::string, std::string> Uids(const JobUnderTest& job, int cpu = 2,
                                                 int gpu = 2) {
    std::map<std::string, std::string> uids = {{"head-0", job.PodUid("head", 0)}};
    for (int i = 0; i < cpu; ++i) uids["cpu-" + std::to_string(i)] = job.PodUid("cpu", i);
    for (int i = 0; i < gpu; ++i) uids["gpu-" + std::to_string(i)] = job.PodUid("gpu", i);
    return uids;
  }
  // Waits until the pods whose uid differs from `before` are exactly `changed`, all run and all are
  // registered.
  void ExpectReplaced(const JobUnderTest& job, const std::map<std::string, std::string>& before,
                      std::set<std::string> changed) {
    WaitFor(
        "exactly " + ::testing::PrintToString(changed) + " replaced",
        [&] {
          std::set<std::string> now;
          for (const auto& [name, uid] : Uids(job)) {
            if (uid.empty()) return false;
            if (uid != before.at(name)) now.insert(name);
          }
          return now == changed;
        },
        seconds(60), [&] { return job.Describe(); });
    EXPECT_TRUE(job.WaitPods(5));
    WaitFor(
        "all registered", [&] { return job.Status()["registered"] == "4/4"; }, seconds(60),
        [&] { return job.Describe(); });
  }

  static OperatorProcess* operator_;
  ControlPlane& plane_ = ControlPlane::Get();
};
OperatorProcess* Restart::operator_ = nullptr;

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

TEST_F(Restart, StartupDeadlineNamesWhoIsMissingAndWhy) {
  TestNamespace space("startup");
  json manifest = Endless("job");
  manifest["spec"]["runPolicy"]["startupDeadlineSeconds"] = 6;
  RoleOf(manifest, "gpu")["template"]["spec"]["containers"] =
      json::array({{{"name", "runtime"}, {"resources", {{"requests", {{"cpu", "1000"}}}}}}});
  AnnotatePods(manifest, "cpu", "fake.hetero.dev/waiting", "ImagePullBackOff");
  JobUnderTest job(space.name(), manifest);
  WaitFor(
      "the reasons are told before the deadline",
      [&] {
        const std::string message = job.Message("Registered");
        return message.find("job-gpu-0") != std::string::npos &&
               message.find("Insufficient cpu") != std::string::npos;
      },
      seconds(10), [&] { return job.Describe(); });
  ASSERT_TRUE(job.WaitIs("Failed"));
  EXPECT_EQ(job.Reason("Failed"), "StartupDeadlineExceeded");
  const std::string message = job.Message("Failed");
  EXPECT_NE(message.find("job-gpu-0"), std::string::npos) << message;
  EXPECT_NE(message.find("Insufficient cpu"), std::string::npos) << message;
  EXPECT_NE(message.find("ImagePull"), std::string::npos) << message;
  EXPECT_TRUE(job.WaitGone());
}

TEST_F(Restart, RegistrationThatNeverComesIsNamed) {
  TestNamespace space("register");
  json manifest = MakeJob("job", {{"steps", 10}, {"neverRegister", json::array({"cpu-1"})}}, 2, 2);
  manifest["spec"]["runPolicy"]["startupDeadlineSeconds"] = 6;
  JobUnderTest job(space.name(), manifest);
  WaitFor(
      "who is missing is told",
      [&] { return job.Message("Registered").find("job-cpu-1") != std::string::npos; }, seconds(10),
      [&] { return job.Describe(); });
  ASSERT_TRUE(job.WaitIs("Failed"));
  EXPECT_NE(job.Message("Failed").find("job-cpu-1"), std::string::npos);
}

TEST_F(Restart, ActiveDeadline) {
  TestNamespace space("deadline");
  json manifest = Endless("job");
  manifest["spec"]["runPolicy"]["activeDeadlineSeconds"] = 4;
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Failed"));
  EXPECT_EQ(job.Reason("Failed"), "DeadlineExceeded");
  EXPECT_TRUE(job.WaitGone());
}

TEST_F(Restart, StallRestartsTheGang) {
  TestNamespace space("stall");
  json manifest =
      MakeJob("job", {{"steps", 1000000}, {"stepMillis", 20}, {"stallAtStep", 20}}, 2, 2);
  manifest["spec"]["runPolicy"]["stallTimeoutSeconds"] = 3;
  manifest["spec"]["runPolicy"]["maxRestarts"] = 1;
  JobUnderTest job(space.name(), manifest);
  WaitFor(
      "the attempt is raised", [&] { return job.Status().value("attempt", 0) == 2; }, seconds(60),
      [&] { return job.Describe(); });
  ASSERT_TRUE(job.WaitIs("Failed")) << "the second stall exceeds the budget";
}

TEST_F(Restart, LostTrainerIsRecreated) {
  TestNamespace space("lost");
  JobUnderTest job(
      space.name(),
      MakeJob("job",
              {{"steps", 1000000}, {"stepMillis", 20}, {"loseMember", "gpu-1"}, {"loseAtStep", 20}},
              2, 2));
  ASSERT_TRUE(job.WaitIs("Running"));
  const auto before = Uids(job);
  ExpectReplaced(job, before, {"gpu-1"});
  EXPECT_EQ(job.Status()["restarts"], 1) << job.Status().dump(1);
}

TEST_F(Restart, ScalingCpuWorkersWhileRunning) {
  TestNamespace space("scale");
  json manifest = Endless("job");
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  json roles = manifest["spec"]["roles"];
  roles[1]["replicas"] = 4;
  job.PatchSpec({{"roles", roles}});
  EXPECT_TRUE(job.WaitPods(7));
  roles[1]["replicas"] = 1;
  job.PatchSpec({{"roles", roles}});
  EXPECT_TRUE(job.WaitPods(4));
  EXPECT_TRUE(job.Is("Running"));
  EXPECT_EQ(job.Status().value("restarts", 0), 0);
}

TEST_F(Restart, SuspendAndResume) {
  TestNamespace space("suspend");
  for (const char* phase : {"created", "waiting", "running"}) {
    SCOPED_TRACE(phase);
    json script = {{"steps", 1000000}, {"stepMillis", 20}};
    if (phase == std::string("waiting")) script["neverRegister"] = json::array({"cpu-1"});
    json manifest = MakeJob(phase, script, 2, 2);
    if (phase == std::string("created")) manifest["spec"]["runPolicy"]["suspend"] = true;
    JobUnderTest job(space.name(), manifest);
    if (phase == std::string("waiting")) job.WaitPods(5);
    if (phase == std::string("running")) job.WaitIs("Running");
    job.PatchSpec({{"runPolicy", {{"suspend", true}}}});
    ASSERT_TRUE(job.WaitIs("Suspended"));
    for (const std::string& child : job.Children()) {
      EXPECT_NE(child.substr(0, 5), "pods/") << child;
    }
    EXPECT_FALSE(job.Is("Running"));
    const json before = job.Status();
    if (phase == std::string("waiting")) {
      plane_.Annotate(kJobs, job.key(), "fake.hetero.dev/script",
                      R"({"steps": 1000000, "stepMillis": 20})");
    }
    job.PatchSpec({{"runPolicy", {{"suspend", false}}}});
    ASSERT_TRUE(job.WaitIs("Running"));
    EXPECT_FALSE(job.Is("Suspended"));
    EXPECT_EQ(job.Reason("Suspended"), "Resumed");
    EXPECT_EQ(job.Status()["attempt"], before.value("attempt", 0) + 1);
    EXPECT_EQ(job.Status().value("restarts", 0), 0);
  }
}

TEST_F(Restart, FinishedJobIgnoresSuspend) {
  TestNamespace space("late");
  JobUnderTest job(space.name(), MakeJob("job", {{"steps", 2}}));
  ASSERT_TRUE(job.WaitIs("Succeeded"));
  job.PatchSpec({{"runPolicy", {{"suspend", true}}}});
  std::this_thread::sleep_for(seconds(1));
  EXPECT_TRUE(job.Is("Succeeded"));
  EXPECT_FALSE(job.Is("Suspended"));
}

TEST_F(Restart, PodTemplateIsMutableOnlyWhileSuspended) {
  TestNamespace space("mutable");
  json manifest = Endless("job");
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  manifest["metadata"]["namespace"] = space.name();
  RoleOf(manifest, "cpu")["template"]["spec"] = {
      {"nodeSelector", {{"kubernetes.io/os", "linux"}}},
      {"containers", json::array({{{"name", "runtime"}}})}};
  const CommandResult refused = plane_.Kubectl({"apply", "-f", "-"}, manifest.dump());
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.output.find("immutable unless the job is suspended"), std::string::npos)
      << refused.output;
  job.PatchSpec({{"runPolicy", {{"suspend", true}}}});
  ASSERT_TRUE(job.WaitIs("Suspended"));
  manifest["spec"]["runPolicy"]["suspend"] = true;
  plane_.MustKubectl({"apply", "-f", "-"}, manifest.dump());
}

}  // namespace
}  // namespace hetero::testing
