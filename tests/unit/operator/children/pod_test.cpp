#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/labels.h"
#include "operator/children/children.h"
#include "tests/unit/operator/children/restricted_profile.h"
#include "tests/unit/operator/children/test_job.h"

namespace hetero::children {
namespace {

using api::RoleType;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

json TemplateWithRuntime(json runtime) {
  runtime["name"] = "runtime";
  return {{"spec", {{"containers", json::array({runtime})}}}};
}

json EnvironmentOf(const json& pod, const std::string& name) {
  return Named(RuntimeOf(pod)["env"], name);
}

// Kueue opens the gate of no pod that does not say how it wants to be placed.
TEST(PodTest, APlaceOfKueuesChoiceIsAskedForInSomeWay) {
  const api::HeteroTrainingJob job = QuickstartJob();
  Placement placement{.workload = "quick-gang", .pod_set = "gpu", .gated = true};
  PodSlot slot = SlotOf(job.spec.roles.back());
  slot.placement = &placement;
  const json gated = Pod(job, slot, {});
  EXPECT_EQ(gated["spec"]["schedulingGates"][0]["name"], "kueue.x-k8s.io/topology");
  constexpr char kUnconstrained[] = "kueue.x-k8s.io/podset-unconstrained-topology";
  EXPECT_EQ(gated["metadata"]["annotations"].value(kUnconstrained, ""), "true");
  placement.annotations["kueue.x-k8s.io/podset-required-topology"] = "rack";
  EXPECT_FALSE(Pod(job, slot, {})["metadata"]["annotations"].contains(kUnconstrained));
}

TEST(PodTest, EveryRoleIsAdmittedByTheRestrictedProfile) {
  for (const RoleType type : {RoleType::kHead, RoleType::kCpuWorker, RoleType::kGpuWorker}) {
    EXPECT_THAT(RestrictedViolations(PodWith(type, nullptr)), IsEmpty());
    const json mounts_data = {
        {"spec",
         {{"volumes",
           json::array({{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data"}}}}})},
          {"containers",
           json::array(
               {{{"name", "runtime"},
                 {"volumeMounts", json::array({{{"name", "data"}, {"mountPath", "/data"}}})}}})}}}};
    EXPECT_THAT(RestrictedViolations(PodWith(type, mounts_data)), IsEmpty());
  }
}

TEST(PodTest, TheProfileCheckerSeesWhatAUserGivesAway) {
  const json generous = {
      {"spec",
       {{"hostNetwork", true},
        {"securityContext", {{"runAsUser", 0}}},
        {"volumes", json::array({{{"name", "host"}, {"hostPath", {{"path", "/"}}}}})},
        {"containers",
         json::array({{{"name", "runtime"}, {"securityContext", {{"privileged", true}}}}})}}}};
  EXPECT_THAT(RestrictedViolations(PodWith(RoleType::kGpuWorker, generous)),
              ElementsAre("hostNetwork", "volume type hostPath", "pod runAsUser 0",
                          "runtime: privileged", "runtime: allowPrivilegeEscalation",
                          "runtime: runAsNonRoot", "runtime: runAsUser 0"));
}

TEST(PodTest, IdentityIsInTheEnvironmentAndInTheLabels) {
  const json pod = PodWith(RoleType::kCpuWorker, nullptr);
  EXPECT_EQ(pod["metadata"]["name"], "quickstart-cpu-1");
  EXPECT_EQ(pod["metadata"]["labels"][api::kRoleLabel], "cpu");
  EXPECT_EQ(pod["metadata"]["labels"][api::kReplicaIndexLabel], "1");
  EXPECT_EQ(pod["metadata"]["labels"][api::kAttemptLabel], "3");
  EXPECT_EQ(pod["metadata"]["annotations"][api::kIncarnationAnnotation], "1767225600000000001");
  const std::map<std::string, std::string> values = {
      {"HETERO_JOB_NAME", "quickstart"},
      {"HETERO_JOB_UID", kUid},
      {"HETERO_NAMESPACE", "team-a"},
      {"HETERO_ROLE", "cpu"},
      {"HETERO_ROLE_TYPE", "CPUWorker"},
      {"HETERO_INDEX", "1"},
      {"HETERO_ATTEMPT", "3"},
      {"HETERO_INCARNATION", "1767225600000000001"},
      {"HETERO_HEAD_ADDRESS", "10.96.0.7:7070"},
      {"HETERO_TERMINATION_LOG", "/dev/termination-log"}};
  for (const auto& [name, value] : values) {
    EXPECT_EQ(EnvironmentOf(pod, name).value("value", ""), value) << name;
  }
  EXPECT_EQ(EnvironmentOf(pod, "HETERO_POD_IP")["valueFrom"]["fieldRef"]["fieldPath"],
            "status.podIP");
  EXPECT_EQ(EnvironmentOf(pod, "HETERO_NODE_NAME")["valueFrom"]["fieldRef"]["fieldPath"],
            "spec.nodeName");
}

// The document of the job lacks it.
TEST(PodTest, TheHeadAloneIsToldTheBudget) {
  const api::HeteroTrainingJob job = QuickstartJob({"runPolicy.maxDollars=12.5"});
  for (const RoleType type : {RoleType::kHead, RoleType::kCpuWorker, RoleType::kGpuWorker}) {
    const json budget = EnvironmentOf(PodWith(type, nullptr, {}, job), "HETERO_MAX_DOLLARS");
    EXPECT_EQ(budget, type == RoleType::kHead
                          ? json({{"name", "HETERO_MAX_DOLLARS"}, {"value", "12.5"}})
                          : json());
  }
  const json without = PodWith(RoleType::kHead, nullptr);
  EXPECT_TRUE(EnvironmentOf(without, "HETERO_MAX_DOLLARS").is_null());
}

TEST(PodTest, HowMuchItLogsIsTheTemplates) {
  const json level = {{"name", "HETERO_LOG_LEVEL"}, {"value", "debug"}};
  const json pod =
      PodWith(RoleType::kCpuWorker, TemplateWithRuntime({{"env", json::array({level})}}));
  EXPECT_EQ(EnvironmentOf(pod, "HETERO_LOG_LEVEL")["value"], "debug");
}

TEST(PodTest, TlsFilesLieWhereTheEnvironmentSays) {
  for (const RoleType type : {RoleType::kHead, RoleType::kCpuWorker, RoleType::kGpuWorker}) {
    const json pod = PodWith(type, nullptr);
    const json volume = Named(pod["spec"]["volumes"], "hetero-tls");
    for (const char* name : {"HETERO_TLS_CERTIFICATE", "HETERO_TLS_KEY"}) {
      const std::string path = EnvironmentOf(pod, name)["value"];
      ASSERT_TRUE(path.starts_with("/etc/hetero-tls/")) << path;
      bool mounted = false;
      for (const json& item : volume["secret"]["items"]) {
        mounted = mounted || path == "/etc/hetero-tls/" + item["path"].get<std::string>();
      }
      EXPECT_TRUE(mounted) << path;
    }
    EXPECT_EQ(volume["secret"]["defaultMode"], 0440);
    EXPECT_TRUE(EnvironmentOf(pod, "HETERO_TLS").is_null());
  }
}

TEST(PodTest, WithoutTlsNothingOfItIsThere) {
  const json pod =
      PodWith(RoleType::kCpuWorker, nullptr, {}, QuickstartJob({"network.tls=Disabled"}));
  EXPECT_EQ(EnvironmentOf(pod, "HETERO_TLS")["value"], "plain-text");
  EXPECT_TRUE(EnvironmentOf(pod, "HETERO_TLS_CA").is_null());
  EXPECT_TRUE(Named(pod["spec"]["volumes"], "hetero-tls").is_null());
  EXPECT_TRUE(Named(RuntimeOf(pod)["volumeMounts"], "hetero-tls").is_null());
}

// The operator reads no Secret: a kubelet gives the keys to the container, those that there are.
TEST(PodTest, KeysOfStoresComeFromTheirSecrets) {
  const std::string storage =
      "storage=[{prefix: 's3://bucket', secretRef: {name: a}}, {prefix: 's3://public', anonymous: "
      "true}, {prefix: 's3://bucket/out', secretRef: {name: b.c}}]";
  const json sidecar = {
      {"spec", {{"containers", json::array({{{"name", "runtime"}}, {{"name", "sidecar"}}})}}}};
  for (const RoleType type : {RoleType::kHead, RoleType::kCpuWorker, RoleType::kGpuWorker}) {
    const json pod = PodWith(type, sidecar, {}, QuickstartJob({storage}));
    std::vector<std::string> found;
    for (const json& variable : RuntimeOf(pod)["env"]) {
      const std::string name = variable["name"];
      if (!name.starts_with("HETERO_STORAGE_")) continue;
      const json& key = variable["valueFrom"]["secretKeyRef"];
      EXPECT_EQ(key["optional"], true) << name;
      found.push_back(name + "=" + key["name"].get<std::string>() + "/" +
                      key["key"].get<std::string>());
    }
    EXPECT_THAT(found, ElementsAre("HETERO_STORAGE_0_ACCESS_KEY_ID=a/AWS_ACCESS_KEY_ID",
                                   "HETERO_STORAGE_0_SECRET_ACCESS_KEY=a/AWS_SECRET_ACCESS_KEY",
                                   "HETERO_STORAGE_0_SESSION_TOKEN=a/AWS_SESSION_TOKEN",
                                   "HETERO_STORAGE_2_ACCESS_KEY_ID=b.c/AWS_ACCESS_KEY_ID",
                                   "HETERO_STORAGE_2_SECRET_ACCESS_KEY=b.c/AWS_SECRET_ACCESS_KEY",
                                   "HETERO_STORAGE_2_SESSION_TOKEN=b.c/AWS_SESSION_TOKEN"));
    EXPECT_FALSE(Named(pod["spec"]["containers"], "sidecar").contains("env"));
  }
}

TEST(PodTest, CommandsOfTheRoles) {
  const json head = RuntimeOf(
      PodWith(RoleType::kHead, nullptr, {}, QuickstartJob({"output.uri=file:///results/run"})));
  EXPECT_EQ(head["command"], json({"hetero-runtime"}));
  EXPECT_EQ(head["args"],
            json({"head", "--job", "/etc/hetero/job.json", "--listen", "0.0.0.0:7070",
                  "--status-listen", "0.0.0.0:7071", "--page-listen", "0.0.0.0:7072",
                  "--metrics-listen", "0.0.0.0:9090", "--created-unix-ns", "1767225600000000001",
                  "--leave-on-stop", "--output", "/results/run"}));
  EXPECT_EQ(RuntimeOf(PodWith(RoleType::kCpuWorker, nullptr))["args"],
            json({"cpu-worker", "--listen", "0.0.0.0:7080", "--metrics-listen", "0.0.0.0:9090"}));
  const json gpu = RuntimeOf(PodWith(RoleType::kGpuWorker, nullptr));
  EXPECT_EQ(gpu["command"], json({"hetero-trainer"}));
  EXPECT_EQ(gpu["args"], json({"--metrics-listen", "0.0.0.0:9090", "--gpus", "0"}));
}

TEST(PodTest, ImagesComeFromTheSettingsUnlessTheTemplateSays) {
  Settings settings;
  settings.runtime_image = "registry/runtime:1";
  settings.trainer_image = "registry/trainer:1";
  settings.image_pull_policy = "Always";
  settings.image_pull_secrets = {"pull", "own"};
  EXPECT_EQ(RuntimeOf(PodWith(RoleType::kHead, nullptr, settings))["image"], "registry/runtime:1");
  const json gpu = PodWith(RoleType::kGpuWorker, nullptr, settings);
  EXPECT_EQ(RuntimeOf(gpu)["image"], "registry/trainer:1");
  EXPECT_EQ(RuntimeOf(gpu)["imagePullPolicy"], "Always");

  json given = TemplateWithRuntime({{"image", "mine:2"}, {"imagePullPolicy", "Never"}});
  given["spec"]["imagePullSecrets"] = json::array({{{"name", "own"}}});
  const json own = PodWith(RoleType::kGpuWorker, given, settings);
  EXPECT_EQ(RuntimeOf(own)["image"], "mine:2");
  EXPECT_EQ(RuntimeOf(own)["imagePullPolicy"], "Never");
  EXPECT_EQ(own["spec"]["imagePullSecrets"], json::array({{{"name", "own"}}, {{"name", "pull"}}}));
}

TEST(PodTest, AskForCores) {
  const auto requests = [](const json& pod) {
    return RuntimeOf(pod).value(json::json_pointer("/resources/requests/cpu"), json());
  };
  EXPECT_EQ(requests(PodWith(RoleType::kCpuWorker, nullptr)), "2");
  EXPECT_EQ(requests(PodWith(RoleType::kHead, nullptr)), json());
  const auto with = [&](const json& resources) {
    return requests(PodWith(RoleType::kCpuWorker, TemplateWithRuntime({{"resources", resources}})));
  };
  EXPECT_EQ(with({{"requests", {{"cpu", "500m"}}}}), "500m");
  EXPECT_EQ(with({{"limits", {{"cpu", "4"}}}}), json()) << "the API server copies the limit";
  EXPECT_EQ(with({{"requests", {{"memory", "1Gi"}}}}), "2");
}

TEST(PodTest, AskForGpus) {
  const auto limits = [](int gpus, const json& resources) {
    api::HeteroTrainingJob job = QuickstartJob();
    RoleOf(job, RoleType::kGpuWorker).gpus_per_replica = gpus;
    return RuntimeOf(PodWith(RoleType::kGpuWorker, TemplateWithRuntime({{"resources", resources}}),
                             {}, job))
        .value(json::json_pointer("/resources/limits"), json());
  };
  EXPECT_EQ(limits(2, nullptr), (json{{"nvidia.com/gpu", "2"}}));
  EXPECT_EQ(limits(0, nullptr), json());
  EXPECT_EQ(limits(2, {{"limits", {{"memory", "8Gi"}}}}),
            (json{{"memory", "8Gi"}, {"nvidia.com/gpu", "2"}}));
  EXPECT_EQ(limits(2, {{"limits", {{"amd.com/gpu", 2}}}}), (json{{"amd.com/gpu", 2}}));
  EXPECT_EQ(limits(1, {{"claims", json::array({{{"name", "gpu"}}})}}), json());
}

TEST(PodTest, WhatTheUserSetStays) {
  const json given = {
      {"metadata",
       {{"labels", {{"team", "vision"}, {api::kRoleLabel, "boss"}}},
        {"annotations", {{"note", "x"}}}}},
      {"spec",
       {{"nodeSelector", {{"pool", "gpu"}}},
        {"restartPolicy", "Always"},
        {"terminationGracePeriodSeconds", 5},
        {"automountServiceAccountToken", true},
        {"securityContext", {{"runAsUser", 1000}}},
        {"volumes", json::array({{{"name", "scratch"}, {"emptyDir", json::object()}}})},
        {"containers",
         json::array(
             {{{"name", "log-shipper"}, {"image", "shipper"}},
              {{"name", "runtime"},
               {"env", json::array({{{"name", "HETERO_INDEX"}, {"value", "9"}},
                                    {{"name", "OMP_NUM_THREADS"}, {"value", "1"}}})},
               {"volumeMounts", json::array({{{"name", "scratch"}, {"mountPath", "/tmp"}}})},
               {"securityContext", {{"readOnlyRootFilesystem", false}}},
               {"readinessProbe", {{"exec", {{"command", {"true"}}}}}}}})}}}};
  const json pod = PodWith(RoleType::kCpuWorker, given);
  EXPECT_EQ(pod["metadata"]["labels"]["team"], "vision");
  EXPECT_EQ(pod["metadata"]["labels"][api::kRoleLabel], "cpu") << "labels of ours are ours";
  EXPECT_EQ(pod["metadata"]["annotations"]["note"], "x");
  const json& spec = pod["spec"];
  EXPECT_EQ(spec["nodeSelector"], (json{{"pool", "gpu"}, {"kubernetes.io/arch", "amd64"}}));
  EXPECT_EQ(spec["restartPolicy"], "Never");
  EXPECT_EQ(spec["terminationGracePeriodSeconds"], 5);
  EXPECT_EQ(spec["automountServiceAccountToken"], true);
  EXPECT_EQ(spec["securityContext"]["runAsUser"], 1000);
  EXPECT_EQ(spec["securityContext"]["runAsNonRoot"], true);
  ASSERT_EQ(spec["containers"].size(), 2u);
  EXPECT_EQ(spec["containers"][0], (json{{"name", "log-shipper"}, {"image", "shipper"}}));
  EXPECT_EQ(EnvironmentOf(pod, "HETERO_INDEX")["value"], "1");
  EXPECT_EQ(RuntimeOf(pod)["env"].back()["name"], "OMP_NUM_THREADS");
  EXPECT_EQ(RuntimeOf(pod)["securityContext"]["readOnlyRootFilesystem"], false);
  EXPECT_EQ(RuntimeOf(pod)["securityContext"]["allowPrivilegeEscalation"], false);
  EXPECT_TRUE(RuntimeOf(pod)["readinessProbe"].contains("exec"));
  EXPECT_TRUE(Named(spec["volumes"], "hetero-tmp").is_null()) << "/tmp is the user's";
  EXPECT_FALSE(Named(spec["volumes"], "hetero-shm").is_null());
}

TEST(PodTest, EveryMountHasItsVolumeAndEveryPathOneMount) {
  for (const RoleType type : {RoleType::kHead, RoleType::kCpuWorker, RoleType::kGpuWorker}) {
    const json pod = PodWith(type, nullptr);
    std::set<std::string> paths;
    for (const json& mount : RuntimeOf(pod)["volumeMounts"]) {
      EXPECT_FALSE(Named(pod["spec"]["volumes"], mount["name"]).is_null()) << mount;
      EXPECT_TRUE(paths.insert(mount["mountPath"]).second) << mount;
    }
    EXPECT_EQ(pod["spec"]["volumes"].size(), paths.size());
  }
}

TEST(PodTest, ACommandOfTheUsersComesWithItsOwnArguments) {
  const json pod = PodWith(RoleType::kHead, TemplateWithRuntime({{"command", {"sleep", "1"}}}));
  EXPECT_EQ(RuntimeOf(pod)["command"], json({"sleep", "1"}));
  EXPECT_FALSE(RuntimeOf(pod).contains("args"));
}

TEST(PodTest, NodesToAvoidAreAPreferenceBesideThoseOfTheTemplate) {
  api::HeteroTrainingJob job = QuickstartJob();
  api::Role& role = job.spec.roles.at(1);
  role.pod_template = R"({"spec": {"affinity": {"nodeAffinity": {
      "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}]}}}})";
  PodSlot slot = SlotOf(role);
  slot.avoided_nodes = {"node-1", "node-2"};
  const json pod = Pod(job, slot, {});
  const json& preferred =
      pod["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
  ASSERT_EQ(preferred.size(), 2u);
  EXPECT_EQ(preferred[1]["weight"], 100);
  const json& fields = preferred[1]["preference"]["matchFields"];
  ASSERT_EQ(fields.size(), 2u) << "the API takes one value for each";
  EXPECT_EQ(fields[0], json::parse(R"({"key": "metadata.name", "operator": "NotIn",
                                      "values": ["node-1"]})"));
  slot.avoided_nodes.clear();
  EXPECT_EQ(
      Pod(job, slot,
          {})["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
          .size(),
      1u);
}

TEST(PodTest, TemplatesOfAnyShapeGiveAPod) {
  for (
      const char* text :
      {"7", "[]", "{", "null", R"({"spec": 7})", R"({"metadata": [], "spec": {"containers": {}}})",
       R"({"spec": {"containers": [1, null, "x"], "volumes": [2], "securityContext": 3}})",
       R"({"spec": {"containers": [{"name": "runtime", "env": 1, "ports": [7], "args": null,
            "resources": [], "volumeMounts": [null], "securityContext": "x"}]}})",
       R"({"spec": {"containers": [{"name": 7}], "imagePullSecrets": 1}, "metadata": {"labels": 1}})"}) {
    api::HeteroTrainingJob job = QuickstartJob();
    for (api::Role& role : job.spec.roles) {
      role.pod_template = text;
      EXPECT_EQ(RuntimeOf(Pod(job, SlotOf(role), {}))["name"], "runtime") << text;
    }
  }
}

}  // namespace
}  // namespace hetero::children
