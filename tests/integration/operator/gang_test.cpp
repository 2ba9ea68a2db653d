// Jobs whose pods a gang scheduler places: what it is told, and what the coscheduling plugin makes
// of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/job_resource.h"
#include "tests/integration/operator/support/world.h"
#include "tests/support/paths.h"

namespace hetero::testing {
namespace {

using children::GangApi;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const kube::Resource kVolcanoGroups = reconcile::PodGroupsOf(GangApi::kVolcano);
const kube::Resource kCoschedulingGroups = reconcile::PodGroupsOf(GangApi::kCoscheduling);

json Ganged(const std::string& name, const std::string& gang, const json& script) {
  json job = MakeJob(name, script);
  job["spec"]["scheduling"] = {{"gang", gang}};
  RoleOf(job, "cpu")["minReplicas"] = 1;
  for (json& role : job["spec"]["roles"]) {
    role["template"]["spec"]["containers"] = {
        {{"name", "runtime"}, {"resources", {{"requests", {{"cpu", "1"}}}}}}};
  }
  return job;
}

json GroupOf(const kube::Resource& resource, const JobUnderTest& job, int attempt = 1) {
  return ControlPlane::Get().Object(
      resource, {job.key().name_space, job.name() + "-gang-" + std::to_string(attempt)});
}

std::vector<std::string> Placed(const std::string& name_space) {
  std::vector<std::string> names;
  for (const json& pod : ControlPlane::Get().Objects(kube::kPods, name_space)) {
    if (pod["spec"].contains("nodeName")) names.push_back(pod["metadata"]["name"]);
  }
  return names;
}

class Gangs : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    World::Get();
    operator_ = new OperatorProcess({.arguments = {"--gangs", "Volcano,Coscheduling,Native"}});
    WaitFor("the operator is ready", [] { return operator_->ready(); });
  }
  static void TearDownTestSuite() {
    EXPECT_EQ(operator_->Stop(), 0);
    delete operator_;
    operator_ = nullptr;
  }

  static OperatorProcess* operator_;
  ControlPlane& plane_ = ControlPlane::Get();
};

OperatorProcess* Gangs::operator_ = nullptr;

// Begun before there is any; Kubernetes 1.34 has no gangs of its own.
TEST_F(Gangs, AClusterWithoutPodGroupsIsWaitedFor) {
  TestNamespace space("early");
  JobUnderTest volcano(space.name(), Ganged("volcano", "Volcano", {{"steps", 5}}));
  JobUnderTest native(space.name(), Ganged("native", "Native", {{"steps", 5}}));
  JobUnderTest none(space.name(), Ganged("none", "None", {{"steps", 5}}));
  for (const JobUnderTest* job : {&volcano, &native}) {
    WaitFor("PodGroups are missed", [&] { return job->Reason("PodsCreated") == "GangMissing"; });
    EXPECT_THAT(job->Message("PodsCreated"),
                AllOf(HasSubstr("spec.scheduling.gang"), HasSubstr("scheduling.gangs")));
  }
  EXPECT_TRUE(none.WaitIs("Succeeded")) << "jobs without a gang go on";
  World::Get().InstallPodGroups();
  WaitFor("its pods are made", [&] { return volcano.Is("PodsCreated"); });
  EXPECT_TRUE(native.Pod("head", 0).is_null());
}

TEST_F(Gangs, VolcanoIsToldOfTheGang) {
  World::Get().InstallPodGroups();
  TestNamespace space("volcano");
  json manifest = Ganged("vit", "Volcano", {{"steps", 5}});
  manifest["spec"]["scheduling"]["queue"] = "research";
  JobUnderTest job(space.name(), manifest);
  WaitFor("its pods are made", [&] { return job.Is("PodsCreated"); });
  const json group = GroupOf(kVolcanoGroups, job);
  ASSERT_TRUE(group.is_object());
  EXPECT_EQ(group["metadata"]["ownerReferences"][0]["uid"], job.uid());
  EXPECT_EQ(group["spec"]["minMember"], 3);
  EXPECT_EQ(group["spec"]["minResources"]["cpu"], "3");
  EXPECT_EQ(group["spec"]["queue"], "research");
  const std::vector<json> pods = plane_.Objects(kube::kPods, space.name());
  EXPECT_EQ(pods.size(), 4u);
  for (const json& pod : pods) {
    EXPECT_EQ(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"], "vit-gang-1");
    EXPECT_EQ(pod["spec"]["schedulerName"], "volcano");
  }
  job.Delete();
  EXPECT_TRUE(job.WaitGone());
  WaitFor("the group is gone", [&] { return GroupOf(kVolcanoGroups, job).is_null(); });
}

// The plugin in the place of the default scheduler, here without it: all but the placing.
TEST_F(Gangs, TheGroupGoesWhenTheJobIsSuspendedAndAtItsEnd) {
  World::Get().InstallPodGroups();
  TestNamespace space("coscheduling");
  json manifest = Ganged("vit", "Coscheduling", {{"steps", 20}, {"holdAtStep", 10}});
  for (json& role : manifest["spec"]["roles"]) {
    role["template"]["spec"]["schedulerName"] = "default-scheduler";
  }
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  EXPECT_EQ(GroupOf(kCoschedulingGroups, job)["spec"]["minMember"], 3);
  EXPECT_EQ(job.Pod("gpu", 0)["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"], "vit-gang-1");
  job.PatchSpec({{"runPolicy", {{"suspend", true}}}});
  ASSERT_TRUE(job.WaitIs("Suspended"));
  WaitFor("the group is gone", [&] { return GroupOf(kCoschedulingGroups, job).is_null(); });
  job.PatchSpec({{"runPolicy", {{"suspend", false}}}});
  ASSERT_TRUE(job.WaitIs("Running"));
  EXPECT_TRUE(GroupOf(kCoschedulingGroups, job, 2).is_object());
  job.Continue();
  ASSERT_TRUE(job.WaitIs("Succeeded"));
  EXPECT_TRUE(job.WaitGone());
  WaitFor("no group is left",
          [&] { return plane_.Objects(kCoschedulingGroups, space.name()).empty(); });
}

// A node of 64 cores, for the gang of one job.
class CoschedulingGangs : public Gangs {
 protected:
  void SetUp() override {
    World::Get().InstallPodGroups();
    const CommandResult started = RunCommand({testing::SourceDir() + "/tests/cluster/coscheduling"},
                                             "", std::chrono::seconds(60));
    ASSERT_EQ(started.exit_code, 0) << started.output;
  }
  // Its head asks for 1 core, all others for 20: 61.
  static json Large(const std::string& name, const std::string& gang) {
    json job = Ganged(name, gang, {{"steps", 20}, {"holdAtStep", 10}});
    RoleOf(job, "cpu")["minReplicas"] = 2;
    for (json& role : job["spec"]["roles"]) {
      json& spec = role["template"]["spec"];
      spec["nodeSelector"] = {{"kubernetes.io/hostname", "node-1"}};
      spec["schedulerName"] = "scheduler-plugins-scheduler";
      const bool head = role["name"] == "head";
      spec["containers"][0]["resources"]["requests"]["cpu"] = head ? "1" : "20";
    }
    return job;
  }
};

TEST_F(CoschedulingGangs, AGangThatDoesNotFitHasNoPlaceAtAll) {
  TestNamespace space("gang"), waiting("waiting"), loose("loose");
  JobUnderTest first(space.name(), Large("first", "Coscheduling"));
  ASSERT_TRUE(first.WaitIs("Running"));
  JobUnderTest second(waiting.name(), Large("second", "Coscheduling"));
  WaitFor("its scheduler has looked at it",
          [&] { return second.Reason("Registered") == "Unschedulable"; });
  // Without a gang the one pod that fits has its place, which would be in the way of others.
  JobUnderTest other(loose.name(), Large("other", "None"));
  WaitFor("its head is placed", [&] { return Placed(loose.name()).size() == 1; });
  EXPECT_THAT(Placed(waiting.name()), IsEmpty());
  EXPECT_TRUE(first.Is("Running"));
  first.Continue();
  ASSERT_TRUE(first.WaitIs("Succeeded"));
  other.Delete();
  ASSERT_TRUE(second.WaitIs("Running", std::chrono::seconds(120)));
  EXPECT_EQ(Placed(waiting.name()).size(), 4u);
  second.Continue();
  EXPECT_TRUE(second.WaitIs("Succeeded"));
}

// Places that pods of the attempt before still hold are none of the next one's.
TEST_F(CoschedulingGangs, AGangRestartWaitsForAllPlaces) {
  TestNamespace space("restart");
  json manifest = Large("vit", "Coscheduling");
  for (json& role : manifest["spec"]["roles"]) role["restartScope"] = "Gang";
  AnnotatePods(manifest, "cpu", "fake.hetero.dev/terminate-after", "10s");
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  job.EndPod("gpu", 0, 1);
  WaitFor("the next attempt begins", [&] { return job.Status().value("attempt", 0) == 2; });
  const auto all_placed = [&] {
    size_t fresh = 0, old = 0;
    for (const json& pod : plane_.Objects(kube::kPods, space.name())) {
      if (!pod["spec"].contains("nodeName")) continue;
      const json& labels = pod["metadata"]["labels"];
      ++(labels.value("scheduling.x-k8s.io/pod-group", "") == "vit-gang-2" ? fresh : old);
    }
    EXPECT_TRUE(fresh == 0 || old == 0) << fresh << " are placed beside " << old << " older ones";
    return fresh == 4;
  };
  ASSERT_TRUE(WaitFor("all have a place", all_placed, std::chrono::seconds(120)));
  WaitFor("the group before is gone", [&] { return GroupOf(kCoschedulingGroups, job).is_null(); });
  ASSERT_TRUE(job.WaitIs("Running"));
  job.Continue();
  EXPECT_TRUE(job.WaitIs("Succeeded"));
}

}  // namespace
}  // namespace hetero::testing
