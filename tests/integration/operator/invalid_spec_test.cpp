#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "tests/integration/operator/support/world.h"
#include "tests/support/paths.h"

// Pod templates that the API server accepts and only the operator knows to be wrong.
namespace hetero::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

struct BadTemplate {
  const char* name;
  const char* template_json;  // of role cpu
  const char* path;           // below spec.roles[1].template
  const char* says;
};

constexpr BadTemplate kBadTemplates[] = {
    {"own-label", R"({"metadata": {"labels": {"training.hetero.dev/role": "gpu"}}})",
     ".metadata.labels[training.hetero.dev/role]", "reserved for the operator"},
    {"own-annotation", R"({"metadata": {"annotations": {"training.hetero.dev/incarnation": "7"}}})",
     ".metadata.annotations[training.hetero.dev/incarnation]", "reserved for the operator"},
    {"restart-policy", R"({"spec": {"restartPolicy": "Always", "containers": []}})",
     ".spec.restartPolicy", "must be Never or absent"},
    {"own-volume",
     R"({"spec": {"volumes": [{"name": "hetero-config", "emptyDir": {}}], "containers": []}})",
     ".spec.volumes[0].name", "is the operator's own"},
    {"no-runtime", R"({"spec": {"containers": [{"name": "sidecar", "image": "a"}]}})",
     ".spec.containers", "exactly one container named runtime"},
    {"init-container",
     R"({"spec": {"containers": [], "initContainers": [{"name": "runtime", "image": "a"}]}})",
     ".spec.initContainers[0].name", "rename it"},
    {"own-variable",
     R"({"spec": {"containers": [{"name": "runtime", "env": [{"name": "HETERO_ROLE", "value": "x"}]}]}})",
     ".spec.containers[0].env[0].name", "variables that begin with HETERO_"},
    {"own-mount",
     R"({"spec": {"volumes": [{"name": "a", "emptyDir": {}}], "containers": [{"name": "runtime",
         "volumeMounts": [{"name": "a", "mountPath": "/etc/hetero/tls"}]}]}})",
     ".spec.containers[0].volumeMounts[0].mountPath", "mount it elsewhere"},
    {"own-port",
     R"({"spec": {"containers": [{"name": "runtime"},
         {"name": "sidecar", "image": "a", "ports": [{"containerPort": 9090}]}]}})",
     ".spec.containers[1].ports[0].containerPort", "choose another"},
};

TEST(InvalidSpec, WhatOnlyTheOperatorKnowsFailsTheJobAndNamesTheField) {
  World::Get();
  OperatorProcess process;
  TestNamespace space("invalid");
  std::deque<JobUnderTest> jobs;
  for (const BadTemplate& bad : kBadTemplates) {
    json job = MakeJob(bad.name);
    RoleOf(job, "cpu")["template"] = json::parse(bad.template_json);
    jobs.emplace_back(space.name(), job);
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    SCOPED_TRACE(kBadTemplates[i].name);
    ASSERT_TRUE(jobs[i].WaitIs("Failed"));
    EXPECT_EQ(jobs[i].Reason("Failed"), "InvalidSpec");
    EXPECT_THAT(jobs[i].Message("Failed"),
                HasSubstr(std::string("spec.roles[1].template") + kBadTemplates[i].path + ": "));
    EXPECT_THAT(jobs[i].Message("Failed"), HasSubstr(kBadTemplates[i].says));
    EXPECT_TRUE(jobs[i].Children().empty()) << "nothing is made of a wrong manifest";
  }
}

// What the API server itself says of a pod reaches the user, and the start-up deadline ends it.
TEST(InvalidSpec, APodThatTheServerRefusesIsToldInItsOwnWords) {
  World::Get();
  OperatorProcess process;
  TestNamespace space("refused");
  json job = MakeJob("refused");
  RoleOf(job, "cpu")["template"] = json::parse(
      R"({"spec": {"containers": [{"name": "runtime",
          "volumeMounts": [{"name": "missing", "mountPath": "/data"}]}]}})");
  job["spec"]["runPolicy"]["startupDeadlineSeconds"] = 10;
  JobUnderTest refused(space.name(), job);
  ASSERT_TRUE(WaitFor("the refusal is told", [&] {
    return refused.Reason("PodsCreated") == "CreateFailed";
  })) << refused.Describe();
  EXPECT_THAT(refused.Message("PodsCreated"), HasSubstr("volumeMounts[0].name"));
  ASSERT_TRUE(refused.WaitIs("Failed", seconds(40))) << refused.Describe();
  EXPECT_EQ(refused.Reason("Failed"), "StartupDeadlineExceeded");
  EXPECT_TRUE(refused.WaitGone());
}

TEST(InvalidSpec, AQueueIsRefusedByNameWhereTheOperatorIsNotSetUpForIt) {
  World::Get();
  OperatorProcess process;
  TestNamespace space("queued");
  json job = MakeJob("queued");
  job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "team";
  JobUnderTest queued(space.name(), job);
  ASSERT_TRUE(queued.WaitIs("Failed")) << queued.Describe();
  EXPECT_EQ(queued.Reason("Failed"), "InvalidSpec");
  EXPECT_THAT(queued.Message("Failed"), HasSubstr("this operator is not set up for queues"));
  EXPECT_TRUE(queued.Children().empty());
}

TEST(InvalidSpec, GpusOfATrainerImageWithoutCudaAndTooManyPodsAreRefusedAtOnce) {
  World::Get();
  OperatorProcess process({.arguments = {"--trainer-image-without-cuda", "--max-pods-per-job=5"}});
  TestNamespace space("unable");
  json wants_gpus = MakeJob("gpus");
  RoleOf(wants_gpus, "gpu")["gpusPerReplica"] = 1;
  JobUnderTest gpus(space.name(), wants_gpus);
  JobUnderTest many(space.name(), MakeJob("many", json::object(), 4, 1));
  JobUnderTest fits(space.name(), MakeJob("fits", {{"steps", 3}}, 3, 1));
  ASSERT_TRUE(gpus.WaitIs("Failed")) << gpus.Describe();
  EXPECT_THAT(gpus.Message("Failed"), HasSubstr("spec.roles[2].gpusPerReplica: 1 asks for GPUs"));
  ASSERT_TRUE(many.WaitIs("Failed")) << many.Describe();
  EXPECT_THAT(many.Message("Failed"), HasSubstr("the job has up to 6 pods"));
  EXPECT_TRUE(fits.WaitIs("Succeeded")) << fits.Describe();
}

// Another version's resource definition, made by a JSON patch of this one's.
class OtherDefinition {
 public:
  explicit OtherDefinition(const std::string& patch) {
    ControlPlane::Get().MustKubectl({"patch", "crd", kDefinition, "--type=json", "-p", patch});
  }
  ~OtherDefinition() {
    ControlPlane::Get().MustKubectl({"replace", "-f", testing::SourceDir() + "/crds/" + kFile});
  }

 private:
  static constexpr char kDefinition[] = "heterotrainingjobs.training.hetero.dev";
  static constexpr char kFile[] = "heterotrainingjobs.training.hetero.dev.yaml";
};

constexpr char kSpecSchema[] = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";

// The definition of the next release is applied first, as documented; this operator is the old one.
TEST(VersionSkew, AnOlderOperatorRunsJobsOfANewerDefinition) {
  World::Get();
  const OtherDefinition newer(
      json::array({{{"op", "add"},
                    {"path", std::string(kSpecSchema) + "/training/properties/ema"},
                    {"value", {{"type", "number"}, {"default", 0.5}}}}})
          .dump());
  OperatorProcess process;
  TestNamespace space("newer");
  json manifest = MakeJob("newer", {{"steps", 3}});
  manifest["spec"]["training"]["ema"] = 0.9;
  ControlPlane& plane = ControlPlane::Get();
  manifest["metadata"]["namespace"] = space.name();
  WaitFor("the server takes the new field", [&] {
    return plane.Kubectl({"apply", "--validate=strict", "-f", "-"}, manifest.dump()).exit_code == 0;
  });
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Succeeded")) << job.Describe();
  EXPECT_EQ(job.Reason("SpecIgnored"), "UnknownFields");
  EXPECT_THAT(job.Message("SpecIgnored"), HasSubstr("spec.training.ema: "));
}

// A running job has a value that this operator refuses, because an earlier definition allowed it.
TEST(VersionSkew, AStricterOperatorFailsNoRunningJob) {
  World::Get();
  OperatorProcess process;
  TestNamespace space("stricter");
  JobUnderTest job(space.name(), MakeJob("begun", {{"steps", 1000000}, {"stepMillis", 20}}));
  ASSERT_TRUE(job.WaitIs("Running")) << job.Describe();
  const std::string before = job.PodUid("gpu", 0);
  const json too_long = {{"spec", {{"runPolicy", {{"memberTimeoutSeconds", 99999}}}}}};
  {
    const OtherDefinition laxer(
        json::array({{{"op", "remove"},
                      {"path", std::string(kSpecSchema) +
                                   "/runPolicy/properties/memberTimeoutSeconds/maximum"}}})
            .dump());
    ControlPlane& plane = ControlPlane::Get();
    WaitFor("the server takes the value", [&] {
      return plane
                 .Kubectl({"patch", "htj", job.name(), "-n", space.name(), "--type=merge", "-p",
                           too_long.dump()})
                 .exit_code == 0;
    });
    process.Kill();  // another one, which has never seen the job valid
    process.Start();
    ASSERT_TRUE(job.WaitIs("SpecIgnored")) << job.Describe();
    EXPECT_EQ(job.Reason("SpecIgnored"), "InvalidSpec");
    EXPECT_THAT(job.Message("SpecIgnored"), HasSubstr("spec.runPolicy.memberTimeoutSeconds: "));
    EXPECT_FALSE(job.Is("Failed"));
    EXPECT_EQ(job.PodUid("gpu", 0), before);
    job.PatchSpec({{"runPolicy", {{"memberTimeoutSeconds", 60}}}});
    WaitFor("it is followed again", [&] { return job.Reason("SpecIgnored") == "Followed"; });
  }
  EXPECT_TRUE(job.Is("Running")) << job.Describe();
  EXPECT_EQ(job.Status()["attempt"], 1);
  EXPECT_EQ(job.PodUid("gpu", 0), before);
}

}  // namespace
}  // namespace hetero::testing
