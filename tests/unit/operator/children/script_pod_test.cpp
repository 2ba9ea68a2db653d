// Pods that run the user's own script in the user's own image.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/children/restricted_profile.h"
#include "tests/unit/operator/children/test_job.h"

namespace hetero::children {
namespace {

using api::RoleType;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

api::HeteroTrainingJob ScriptJob() {
  api::HeteroTrainingJob job = QuickstartJob();
  job.spec.training.script = api::Script{.command = {"python", "train.py"}};
  return job;
}

// A template whose container `runtime` has an image and `more`.
json UsersTemplate(const json& more = json::object()) {
  json runtime = {{"name", "runtime"}, {"image", "my/train:1"}};
  runtime.update(more);
  return {{"spec", {{"containers", json::array({runtime})}}}};
}

json ScriptPod(const json& pod_template = UsersTemplate(), const Settings& settings = {}) {
  return PodWith(RoleType::kGpuWorker, pod_template, settings, ScriptJob());
}

std::vector<std::string> Findings(const json& pod_template) {
  api::HeteroTrainingJob job = ScriptJob();
  RoleOf(job, RoleType::kGpuWorker).pod_template = pod_template.dump();
  std::vector<std::string> lines;
  for (const TemplateError& error : CheckTemplates(job)) {
    lines.push_back(error.path + ": " + error.reason);
  }
  return lines;
}

TEST(ScriptPod, OurProgramComesIntoTheUsersImage) {
  const json pod = ScriptPod();
  const json& runtime = RuntimeOf(pod);
  EXPECT_EQ(runtime["image"], "my/train:1");
  EXPECT_EQ(runtime["command"], json({"/hetero/bin/hetero-runtime"}));
  EXPECT_EQ(runtime["args"], json({"agent", "--ranks", "1", "--metrics-listen", "0.0.0.0:9090"}));
  const json& init = pod["spec"]["initContainers"];
  ASSERT_EQ(init.size(), 1u);
  EXPECT_EQ(init[0]["image"], Settings().runtime_image);
  EXPECT_EQ(init[0]["args"], json({"install", "/hetero"}));
  const json written = Named(init[0]["volumeMounts"], "hetero-program");
  const json read = Named(runtime["volumeMounts"], "hetero-program");
  EXPECT_EQ(written["mountPath"], read["mountPath"]);
  EXPECT_FALSE(written.contains("readOnly"));
  EXPECT_EQ(read["readOnly"], true) << "no script changes what runs it";
  EXPECT_EQ(Named(pod["spec"]["volumes"], "hetero-program")["emptyDir"], json::object());
  EXPECT_EQ(pod["spec"]["nodeSelector"]["kubernetes.io/arch"], "amd64");
}

TEST(ScriptPod, EveryGpuHasARank) {
  api::HeteroTrainingJob job = ScriptJob();
  RoleOf(job, RoleType::kGpuWorker).gpus_per_replica = 8;
  const json pod = PodWith(RoleType::kGpuWorker, UsersTemplate(), {}, job);
  EXPECT_EQ(RuntimeOf(pod)["args"][2], "8");
  EXPECT_EQ(RuntimeOf(pod)["resources"]["limits"]["nvidia.com/gpu"], "8");
}

// The kubelet would kill it in the middle.
TEST(ScriptPod, HasTimeToSave) {
  const auto grace = [](api::HeteroTrainingJob job, const json& pod_template) {
    return PodWith(RoleType::kGpuWorker, pod_template, {}, std::move(job))["spec"].value(
        "terminationGracePeriodSeconds", 0);
  };
  api::HeteroTrainingJob job = ScriptJob();
  job.spec.training.checkpoint.reset();
  EXPECT_EQ(grace(job, UsersTemplate()), 30);
  job.spec.training.checkpoint.emplace();
  job.spec.run_policy.stop_grace_seconds = 60;
  EXPECT_EQ(grace(job, UsersTemplate()), 75);
  job.spec.run_policy.stop_grace_seconds = 5;
  EXPECT_EQ(grace(job, UsersTemplate()), 30);
  json given = UsersTemplate();
  given["spec"]["terminationGracePeriodSeconds"] = 600;
  EXPECT_EQ(grace(job, given), 600);
}

// The agent in the user's image reads samples, too; what fills its volume reads nothing.
TEST(ScriptPod, KeysOfStoresAreTheAgents) {
  api::HeteroTrainingJob job = ScriptJob();
  job.spec.storage = {{.prefix = "s3://bucket", .secret_ref = api::SecretReference{"keys"}}};
  const json pod = PodWith(RoleType::kGpuWorker, UsersTemplate(), {}, job);
  const json key = Named(RuntimeOf(pod)["env"], "HETERO_STORAGE_0_ACCESS_KEY_ID");
  EXPECT_EQ(key["valueFrom"]["secretKeyRef"]["name"], "keys");
  EXPECT_FALSE(pod["spec"]["initContainers"][0].contains("env"));
}

TEST(ScriptPod, OthersOfTheJobAreAsEver) {
  for (const RoleType type : {RoleType::kHead, RoleType::kCpuWorker}) {
    EXPECT_EQ(PodWith(type, nullptr, {}, ScriptJob()), PodWith(type, nullptr));
  }
  EXPECT_FALSE(PodWith(RoleType::kGpuWorker, nullptr)["spec"].contains("initContainers"));
}

TEST(ScriptPod, IsAdmittedByTheRestrictedProfile) {
  EXPECT_THAT(RestrictedViolations(ScriptPod()), IsEmpty());
}

// An attempt's programs are of one build, whatever the operator's own images are by then.
TEST(ScriptPod, TheProgramIsOfTheAttemptsImage) {
  api::HeteroTrainingJob job = ScriptJob();
  const api::Role& role = RoleOf(job, RoleType::kGpuWorker);
  PodSlot slot = SlotOf(role);
  slot.install_image = "hetero-runtime:older";
  Settings settings;
  settings.image_pull_policy = "Always";
  const json pod = Pod(job, slot, settings);
  EXPECT_EQ(pod["spec"]["initContainers"][0]["image"], "hetero-runtime:older");
  EXPECT_EQ(pod["spec"]["initContainers"][0]["imagePullPolicy"], "Always");
}

TEST(ScriptPod, WhatTheTemplateSaysStays) {
  json given = UsersTemplate({{"env", json::array({{{"name", "HOME"}, {"value", "/scratch"}},
                                                   {{"name", "PYTHONPATH"}, {"value", "/app"}}})},
                              {"workingDir", "/app"},
                              {"securityContext", {{"readOnlyRootFilesystem", false}}}});
  given["spec"]["nodeSelector"] = {{"gpu", "h100"}};
  given["spec"]["initContainers"] = json::array({{{"name", "fetch"}, {"image", "my/data:1"}}});
  const json pod = ScriptPod(given);
  const json& runtime = RuntimeOf(pod);
  EXPECT_EQ(Named(runtime["env"], "HOME")["value"], "/scratch");
  EXPECT_EQ(Named(runtime["env"], "PYTHONPATH")["value"], "/app");
  EXPECT_EQ(Named(runtime["env"], "XDG_CACHE_HOME")["value"], "/tmp/.cache");
  EXPECT_EQ(runtime["workingDir"], "/app");
  EXPECT_EQ(runtime["securityContext"]["readOnlyRootFilesystem"], false);
  EXPECT_EQ(pod["spec"]["nodeSelector"]["gpu"], "h100");
  EXPECT_EQ(pod["spec"]["initContainers"].size(), 2u);
  EXPECT_EQ(pod["spec"]["initContainers"][1]["name"], "fetch");
}

// Variables of the image cannot be seen from here: nothing that images set is set but these.
TEST(ScriptPod, LibrariesKeepTheirFilesBelowTmp) {
  const json runtime = RuntimeOf(ScriptPod());
  EXPECT_EQ(Named(runtime["env"], "HOME")["value"], "/tmp");
  EXPECT_TRUE(Named(runtime["env"], "PYTHONPATH").is_null());
  EXPECT_TRUE(Named(runtime["env"], "PATH").is_null());
  EXPECT_TRUE(Named(runtime["env"], "LD_LIBRARY_PATH").is_null());
  EXPECT_EQ(
      Named(RuntimeOf(PodWith(RoleType::kCpuWorker, nullptr, {}, ScriptJob()))["env"], "HOME"),
      json());
}

TEST(ScriptPod, AnImageMustBeNamed) {
  EXPECT_THAT(Findings(UsersTemplate()), IsEmpty());
  EXPECT_THAT(Findings({{"spec", {{"nodeSelector", {{"a", "b"}}}}}}),
              ElementsAre(HasSubstr("template: must name the image of training.script")));
  api::HeteroTrainingJob job = ScriptJob();
  for (api::Role& role : job.spec.roles) role.pod_template.clear();
  EXPECT_EQ(CheckTemplates(job).size(), 1u) << "head and CPU workers have ours";
}

TEST(ScriptPod, ItsNamesAndPlacesAreTaken) {
  const auto spec = [](const char* key, const json& value) {
    json given = UsersTemplate();
    given["spec"][key] = value;
    return Findings(given);
  };
  EXPECT_THAT(spec("volumes", json::array({{{"name", "hetero-program"}}})),
              ElementsAre(HasSubstr(".spec.volumes[0].name: ")));
  EXPECT_THAT(spec("initContainers", json::array({{{"name", "hetero-install"}}})),
              ElementsAre(HasSubstr(".spec.initContainers[0].name: ")));
  EXPECT_THAT(spec("nodeSelector", {{"kubernetes.io/arch", "arm64"}}),
              ElementsAre(HasSubstr(".spec.nodeSelector[kubernetes.io/arch]: must be amd64")));
  EXPECT_THAT(spec("nodeSelector", {{"kubernetes.io/arch", "amd64"}}), IsEmpty());
  EXPECT_THAT(spec("nodeSelector", "arm64"), ElementsAre(HasSubstr(".spec.nodeSelector: ")));
  for (const char* path : {"/hetero", "/hetero/data"}) {
    EXPECT_THAT(Findings(UsersTemplate({{"volumeMounts", json::array({{{"mountPath", path}}})}})),
                ElementsAre(HasSubstr(".volumeMounts[0].mountPath: ")));
  }
  EXPECT_THAT(
      Findings(UsersTemplate({{"volumeMounts", json::array({{{"mountPath", "/heterodox"}}})}})),
      IsEmpty());
}

// Jobs without a script may have had a volume there for long.
TEST(ScriptPod, JobsWithoutAScriptMayUseTheFolder) {
  api::HeteroTrainingJob job = QuickstartJob();
  RoleOf(job, RoleType::kGpuWorker).pod_template =
      UsersTemplate({{"volumeMounts", json::array({{{"mountPath", "/hetero"}}})}}).dump();
  EXPECT_THAT(CheckTemplates(job), IsEmpty());
}

}  // namespace
}  // namespace hetero::children
