#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "tests/integration/operator/support/world.h"

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

}  // namespace
}  // namespace hetero::testing
