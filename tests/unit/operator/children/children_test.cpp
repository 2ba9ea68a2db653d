#include "operator/children/children.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/labels.h"
#include "api/ports.h"
#include "operator/children/names.h"
#include "tests/support/paths.h"
#include "tests/unit/operator/children/test_job.h"

namespace hetero::children {
namespace {

using nlohmann::json;

std::vector<json> AllChildren(const api::HeteroTrainingJob& job) {
  std::vector<json> children = {HeadService(job), ConfigMap(job, {}, "a", "b"),
                                TlsSecret(job, {}, {}, {}), NetworkPolicy(job, {})};
  for (const api::Role& role : job.spec.roles) children.push_back(Pod(job, SlotOf(role), {}));
  return children;
}

TEST(ChildrenTest, EachIsOwnedLabelledAndFreeOfFinalizers) {
  const api::HeteroTrainingJob job = QuickstartJob();
  const json owner = {{"apiVersion", "training.hetero.dev/v1alpha1"},
                      {"kind", "HeteroTrainingJob"},
                      {"name", "quickstart"},
                      {"uid", kUid},
                      {"controller", true},
                      {"blockOwnerDeletion", true}};
  for (const json& child : AllChildren(job)) {
    const json& metadata = child["metadata"];
    EXPECT_EQ(metadata["ownerReferences"], json::array({owner})) << metadata;
    EXPECT_EQ(metadata["namespace"], "team-a");
    EXPECT_EQ(metadata["labels"][api::kManagedByLabel], api::kManagedByValue);
    EXPECT_EQ(metadata["labels"][api::kJobNameLabel], "quickstart");
    EXPECT_EQ(absl::StrCat(api::kJobUidLabel, "=",
                           metadata["labels"][api::kJobUidLabel].get<std::string>()),
              JobSelector(job.metadata));
    EXPECT_FALSE(metadata.contains("finalizers"));
    EXPECT_FALSE(metadata.contains("generateName"));
  }
}

void CollectPaths(const json& value, const std::string& path, std::set<std::string>& paths) {
  if (value.is_array()) {
    for (const json& element : value) CollectPaths(element, path + "[]", paths);
  } else if (value.is_object()) {
    for (const auto& [name, field] : value.items()) {
      paths.insert(absl::StrCat(path, ".", name));
      CollectPaths(field, absl::StrCat(path, ".", name), paths);
    }
  }
}

// Rolled back to it, the operator gives this document, which is not made anew, to programs that
// refuse what they do not know.
TEST(ChildrenTest, AJobWithoutNewFieldsCanBeReadByTheLastRelease) {
  std::ifstream file(testing::SourceDir() + "/tests/unit/api/released_fields.txt");
  std::set<std::string> released;
  for (std::string path; std::getline(file, path);) released.insert(path);
  ASSERT_FALSE(released.empty());
  const json config = ConfigMap(QuickstartJob(), {}, "a", "b");
  const json document = json::parse(config["data"]["job.json"].get<std::string>());
  std::set<std::string> paths;
  CollectPaths(document["spec"], "spec", paths);
  EXPECT_THAT(released, ::testing::IsSupersetOf(paths));
}

TEST(ChildrenTest, WhatDiffersFromItsDefaultIsInTheConfiguration) {
  const json config = ConfigMap(QuickstartJob({"runPolicy.stopGraceSeconds=7"}), {}, "a", "b");
  const json document = json::parse(config["data"]["job.json"].get<std::string>());
  EXPECT_EQ(document["spec"]["runPolicy"]["stopGraceSeconds"], 7);
}

TEST(ChildrenTest, NamesFitKubernetesLimits) {
  api::Metadata longest;
  longest.name = std::string(38, 'j');
  longest.uid = kUid;
  EXPECT_LE(ServiceName(longest).size(), 63u);
  EXPECT_EQ(SecretName(longest), std::string(38, 'j') + "-tls-0b8c2c1e-7");
  EXPECT_EQ(PodName(longest, "cpu", 7), std::string(38, 'j') + "-cpu-7");
  for (const auto& [key, value] : ChildLabels(longest)) EXPECT_LE(value.size(), 63u) << key;
}

TEST(ChildrenTest, TheServiceSelectsTheHeadsPodAndNoOther) {
  const api::HeteroTrainingJob job = QuickstartJob();
  const json service = HeadService(job);
  for (const api::Role& role : job.spec.roles) {
    const json pod = Pod(job, SlotOf(role), {});
    bool selected = true;
    for (const auto& [key, value] : service["spec"]["selector"].items()) {
      selected = selected && pod["metadata"]["labels"].value(key, "") == value;
    }
    EXPECT_EQ(selected, role.type == api::RoleType::kHead) << role.name;
    if (!selected) continue;
    for (const json& port : service["spec"]["ports"]) {
      EXPECT_EQ(Named(RuntimeOf(pod)["ports"], port["name"])["containerPort"], port["targetPort"]);
    }
  }
}

TEST(ChildrenTest, TheConfigMapHoldsTheSameJobWithoutWhatProcessesDoNotRead) {
  api::HeteroTrainingJob job = QuickstartJob();
  job.metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"] = "secret words";
  RoleOf(job, api::RoleType::kGpuWorker).pod_template = R"({"metadata": {"x": "secret words"}})";
  const json data = ConfigMap(job, {}, "", "")["data"];
  const std::string text = data["job.json"];
  EXPECT_EQ(text.find("secret words"), std::string::npos);
  EXPECT_FALSE(data.contains("ca.crt"));
  EXPECT_FALSE(data.contains("operator-ca.crt"));
  const api::ManifestResult read = api::ParseManifest(text);
  EXPECT_TRUE(read.errors.empty()) << api::FormatErrors(read.errors);
  EXPECT_EQ(read.job.metadata.uid, kUid);
  EXPECT_EQ(read.job.spec.roles.size(), 3u);
  EXPECT_EQ(read.job.spec.world_size(), job.spec.world_size());
}

TEST(ChildrenTest, EachPodMountsItsOwnRoleTypesKeysOfTheSecretOnly) {
  const api::HeteroTrainingJob job = QuickstartJob();
  const json secret = TlsSecret(job, {"hc", "hk"}, {"cc", "ck"}, {"gc", "gk"});
  EXPECT_EQ(secret["stringData"].size(), 6u);
  std::set<std::string> seen;
  for (const api::Role& role : job.spec.roles) {
    const json volume = Named(Pod(job, SlotOf(role), {})["spec"]["volumes"], "hetero-tls");
    EXPECT_EQ(volume["secret"]["secretName"], secret["metadata"]["name"]);
    ASSERT_EQ(volume["secret"]["items"].size(), 2u);
    for (const json& item : volume["secret"]["items"]) {
      EXPECT_TRUE(secret["stringData"].contains(item["key"].get<std::string>())) << item;
      EXPECT_TRUE(seen.insert(item["key"]).second) << item << " is mounted by two roles";
    }
  }
}

TEST(ChildrenTest, ThePolicyLetsInOnlyWhoIsNamed) {
  const api::HeteroTrainingJob job = QuickstartJob();
  Settings settings;
  settings.operator_namespace = "ops";
  const json policy = NetworkPolicy(job, settings)["spec"];
  ASSERT_EQ(policy["ingress"].size(), 2u);
  EXPECT_EQ(policy["policyTypes"], json({"Ingress"}));
  EXPECT_EQ(policy["podSelector"]["matchLabels"], (json{{api::kJobUidLabel, kUid}}));
  EXPECT_EQ(policy["ingress"][0]["from"], json::array({{{"podSelector", policy["podSelector"]}}}));
  EXPECT_FALSE(policy["ingress"][0].contains("ports")) << "all ports among the job's pods";
  const json& from = policy["ingress"][1]["from"][0];
  EXPECT_EQ(from["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"], "ops");
  EXPECT_EQ(from["podSelector"]["matchLabels"]["app.kubernetes.io/name"], "hetero-operator");
  EXPECT_EQ(policy["ingress"][1]["ports"][0]["port"], api::kStatusPort);

  settings.metrics_from = "monitoring";
  const json with_metrics = NetworkPolicy(job, settings)["spec"]["ingress"];
  ASSERT_EQ(with_metrics.size(), 3u);
  EXPECT_EQ(with_metrics[2]["ports"][0]["port"], api::kMetricsPort);
}

TEST(ChildrenTest, TheSameArgumentsGiveTheSameBytes) {
  const std::vector<json> once = AllChildren(QuickstartJob()), again = AllChildren(QuickstartJob());
  for (size_t i = 0; i < once.size(); ++i) EXPECT_EQ(once[i].dump(), again[i].dump());
}

}  // namespace
}  // namespace hetero::children
