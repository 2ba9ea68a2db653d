#include <gtest/gtest.h>

#include <set>

#include "operator/children/names.h"
#include "tests/integration/operator/support/world.h"

// A job's life and death on the real control plane, as kubectl and the API see them.
namespace hetero::testing {
namespace {

using std::chrono::seconds;

constexpr char kStores[] =
    R"([{"endpoint":"https://minio.example:9000","prefix":"s3://datasets"}])";

class Lifecycle : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    World::Get();
    operator_ = new OperatorProcess({.arguments = {"--storage-defaults", kStores}});
    WaitFor("the operator is ready", [] { return operator_->ready(); });
  }
  static void TearDownTestSuite() {
    EXPECT_EQ(operator_->Stop(), 0) << "SIGTERM is a clean end";
    delete operator_;
  }
  static OperatorProcess* operator_;
  ControlPlane& plane_ = ControlPlane::Get();
};
OperatorProcess* Lifecycle::operator_ = nullptr;

TEST_F(Lifecycle, FromApplyToGone) {
  TestNamespace space("life");
  JobUnderTest job(
      space.name(),
      MakeJob("quick", {{"steps", 20}, {"holdAtStep", 10}, {"result", {{"accuracy", 0.885}}}}));
  ASSERT_TRUE(job.WaitPods(4));
  ASSERT_TRUE(job.WaitIs("Running"));
  EXPECT_TRUE(job.Is("PodsCreated"));
  EXPECT_TRUE(job.Is("Registered"));
  json status = job.Status();
  EXPECT_EQ(status["registered"], "3/3");
  EXPECT_EQ(status["attempt"], 1);
  EXPECT_EQ(status["conditions"].size(), 11u) << "all are set from the first pass on";
  for (const json& condition : status["conditions"]) {
    EXPECT_EQ(condition["observedGeneration"], 1) << condition;
  }
  // Service, ConfigMap, Secret, NetworkPolicy, four pods; each owned by the job, so that the API's
  // garbage collector removes them, and none with a finalizer.
  const std::vector<std::string> children = job.Children();
  EXPECT_EQ(children.size(), 8u) << ::testing::PrintToString(children);
  for (const char* name :
       {"pods/quick-head-0", "pods/quick-cpu-0", "pods/quick-cpu-1", "pods/quick-gpu-0",
        "services/quick-head", "configmaps/quick-config", "networkpolicies/quick"}) {
    EXPECT_TRUE(std::count(children.begin(), children.end(), name)) << name;
  }
  const json pod = job.Pod("gpu", 0);
  EXPECT_FALSE(pod["metadata"].contains("finalizers"));
  EXPECT_EQ(pod["metadata"]["ownerReferences"][0]["controller"], true);
  EXPECT_EQ(pod["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], true);
  const json config = plane_.Object(kube::kConfigMaps, {space.name(), "quick-config"});
  const json document = json::parse(config["data"]["job.json"].get<std::string>());
  EXPECT_EQ(document["spec"]["storage"], json::parse(kStores));
  EXPECT_FALSE(job.Get()["spec"].contains("storage")) << "the job's own object stays the user's";
  // What a person sees while it runs.
  const std::string table = plane_.MustKubectl({"get", "htj", "-n", space.name()});
  EXPECT_NE(table.find("STATE"), std::string::npos) << table;
  EXPECT_NE(table.find("Running"), std::string::npos) << table;
  EXPECT_NE(table.find("3/3"), std::string::npos) << table;
  job.Continue();
  plane_.MustKubectl(
      {"wait", "--for=condition=Succeeded", "--timeout=60s", "htj/quick", "-n", space.name()});
  ASSERT_TRUE(job.WaitGone());
  status = job.Status();
  EXPECT_EQ(status["result"]["accuracy"], 0.885) << status.dump(1);
  EXPECT_EQ(status["progress"]["step"], 20) << status.dump(1);
  EXPECT_TRUE(status.contains("completionTime"));
  EXPECT_EQ(status.value("restarts", 0), 0);
  EXPECT_FALSE(job.Is("Running"));
  EXPECT_EQ(job.Reason("Running"), "Finished");
  const std::string described =
      plane_.MustKubectl({"describe", "htj", "quick", "-n", space.name()});
  EXPECT_NE(described.find("JobSucceeded"), std::string::npos) << described;
}

TEST_F(Lifecycle, FailureIsKeptBeforeItsPodIsGone) {
  TestNamespace space("fails");
  json manifest = MakeJob("broken", {{"steps", 1000}, {"stepMillis", 50}});
  manifest["spec"]["runPolicy"]["maxRestarts"] = 0;
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  const std::string node = job.Pod("gpu", 0)["spec"]["nodeName"];
  job.EndPod("gpu", 0, 42, "CUDA error: device-side assert");
  ASSERT_TRUE(job.WaitIs("Failed"));
  EXPECT_EQ(job.Reason("Failed"), "MaxRestartsExceeded");
  ASSERT_TRUE(job.WaitGone());
  const json failure = job.Status()["firstFailure"];
  EXPECT_EQ(failure["pod"], "broken-gpu-0") << failure;
  EXPECT_EQ(failure["role"], "gpu");
  EXPECT_EQ(failure["exitCode"], 42);
  EXPECT_EQ(failure["node"], node);
  EXPECT_NE(failure["message"].get<std::string>().find("device-side assert"), std::string::npos);
}

TEST_F(Lifecycle, VerdictOfTheHeadFailsTheJob) {
  TestNamespace space("verdict");
  JobUnderTest job(
      space.name(),
      MakeJob("diverged",
              {{"steps", 5}, {"verdict", "Failed"}, {"message", "loss is not finite at step 5"}}));
  ASSERT_TRUE(job.WaitIs("Failed"));
  EXPECT_NE(job.Message("Failed").find("not finite"), std::string::npos) << job.Describe();
  EXPECT_FALSE(job.Is("Succeeded"));
  ASSERT_TRUE(job.WaitGone());
}

TEST_F(Lifecycle, CleanPodPolicyNoneKeepsEverything) {
  TestNamespace space("none");
  json manifest = MakeJob("keep", {{"steps", 3}});
  manifest["spec"]["runPolicy"]["cleanPodPolicy"] = "None";
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Succeeded"));
  std::this_thread::sleep_for(seconds(2));
  EXPECT_EQ(job.Children().size(), 8u) << job.Describe();
}

TEST_F(Lifecycle, CleanPodPolicyRunningKeepsEndedPods) {
  TestNamespace space("running");
  json manifest = MakeJob("half", {{"steps", 3}, {"keepRunning", json::array({"cpu-1"})}});
  manifest["spec"]["runPolicy"]["cleanPodPolicy"] = "Running";
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Succeeded"));
  WaitFor(
      "the running pod is gone", [&] { return job.Pod("cpu", 1).is_null(); }, seconds(60),
      [&] { return job.Describe(); });
  EXPECT_FALSE(job.Pod("gpu", 0).is_null()) << "an ended pod stays for its logs";
}

TEST_F(Lifecycle, TtlDeletesTheObjectItself) {
  TestNamespace space("ttl");
  json manifest = MakeJob("brief", {{"steps", 3}});
  manifest["spec"]["runPolicy"]["ttlSecondsAfterFinished"] = 2;
  JobUnderTest job(space.name(), manifest);
  WaitFor(
      "the job is gone", [&] { return job.Get().is_null(); }, seconds(60),
      [&] { return job.Describe(); });
  EXPECT_TRUE(job.WaitGone());
}

TEST_F(Lifecycle, ManagedByAnotherIsLeftAlone) {
  TestNamespace space("managed");
  json manifest = MakeJob("theirs");
  manifest["spec"]["runPolicy"]["managedBy"] = "kueue.x-k8s.io/multikueue";
  JobUnderTest job(space.name(), manifest);
  JobUnderTest ours(space.name(), MakeJob("ours", {{"steps", 3}}));
  ASSERT_TRUE(ours.WaitIs("Succeeded"));
  EXPECT_TRUE(job.Children().empty());
  EXPECT_TRUE(job.Status().empty()) << job.Status();
}

TEST_F(Lifecycle, ServiceOfAnotherJobIsANameConflict) {
  TestNamespace space("conflict");
  plane_.MustKubectl(
      {"create", "service", "clusterip", "taken-head", "--tcp=1", "-n", space.name()});
  JobUnderTest job(space.name(), MakeJob("taken"));
  WaitFor(
      "the conflict is told", [&] { return job.Reason("PodsCreated") == "NameConflict"; },
      seconds(30), [&] { return job.Describe(); });
  EXPECT_NE(job.Message("PodsCreated").find("taken-head"), std::string::npos);
  plane_.MustKubectl({"delete", "service", "taken-head", "-n", space.name()});
  EXPECT_TRUE(job.WaitIs("Succeeded"));
}

TEST_F(Lifecycle, QuotaIsToldAndHealsByItself) {
  TestNamespace space("quota");
  plane_.MustKubectl({"create", "quota", "few", "--hard=pods=2", "-n", space.name()});
  JobUnderTest job(space.name(), MakeJob("big", {{"steps", 3}}));
  WaitFor(
      "the quota is told", [&] { return job.Reason("PodsCreated") == "QuotaExceeded"; },
      seconds(30), [&] { return job.Describe(); });
  plane_.MustKubectl({"delete", "quota", "few", "-n", space.name()});
  EXPECT_TRUE(job.WaitIs("Succeeded", seconds(90)));
  EXPECT_TRUE(job.WaitGone());
}

// Phases in which an object can be deleted.
enum class Phase { kJustApplied, kWaiting, kRunning, kRestarting, kSuspended, kFinished };

class Deletion : public Lifecycle, public ::testing::WithParamInterface<Phase> {
 protected:
  // A job brought to the phase.
  JobUnderTest JobIn(const std::string& space, const std::string& name) {
    json script = {{"steps", 100000}, {"stepMillis", 50}};
    if (GetParam() == Phase::kWaiting) script["neverRegister"] = json::array({"cpu-1"});
    if (GetParam() == Phase::kFinished) script = {{"steps", 2}};
    json manifest = MakeJob(name, script);
    if (GetParam() == Phase::kSuspended) manifest["spec"]["runPolicy"]["suspend"] = true;
    RoleOf(manifest, "gpu")["restartScope"] = "Gang";
    JobUnderTest job(space, manifest);
    switch (GetParam()) {
      case Phase::kJustApplied:
        break;
      case Phase::kWaiting:
        job.WaitPods(4);
        break;
      case Phase::kRunning:
        job.WaitIs("Running");
        break;
      case Phase::kRestarting:
        job.WaitIs("Running");
        job.EndPod("gpu", 0, 1);
        WaitFor("the attempt is raised", [&] { return job.Status().value("attempt", 0) == 2; });
        break;
      case Phase::kSuspended:
        job.WaitIs("Suspended");
        break;
      case Phase::kFinished:
        job.WaitIs("Succeeded");
        break;
    }
    return job;
  }
};

TEST_P(Deletion, OfTheObjectLeavesNothing) {
  TestNamespace space("delete");
  for (const std::string cascade : {"background", "foreground"}) {
    JobUnderTest job = JobIn(space.name(), cascade);
    plane_.MustKubectl(
        {"delete", "htj", cascade, "-n", space.name(), "--cascade=" + cascade, "--wait=false"});
    EXPECT_TRUE(job.WaitGone()) << cascade;
    WaitFor("the object is gone", [&] { return job.Get().is_null(); });
  }
}

TEST_P(Deletion, OfTheNamespaceFinishes) {
  TestNamespace space("whole");
  JobUnderTest job = JobIn(space.name(), "doomed");
  plane_.MustKubectl({"delete", "namespace", space.name(), "--wait=false"});
  WaitFor(
      "the namespace is gone",
      [&] {
        return plane_.Object(kube::kNamespaces, {"", space.name()}).is_null();
      },
      seconds(90),
      [&] {
        return plane_.Object(kube::kNamespaces, {"", space.name()}).dump(1) + job.Describe();
      });
}

INSTANTIATE_TEST_SUITE_P(InEveryPhase, Deletion,
                         ::testing::Values(Phase::kJustApplied, Phase::kWaiting, Phase::kRunning,
                                           Phase::kRestarting, Phase::kSuspended,
                                           Phase::kFinished));

}  // namespace
}  // namespace hetero::testing
