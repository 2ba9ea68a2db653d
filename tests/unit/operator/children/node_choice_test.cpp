// Which nodes pods are for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/children/test_job.h"

namespace hetero::children {
namespace {

using api::RoleType;
using nlohmann::json;

constexpr char kRequired[] = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr char kPreferred[] = "preferredDuringSchedulingIgnoredDuringExecution";

api::HeteroTrainingJob JobWith(RoleType type, api::Capacity capacity) {
  api::HeteroTrainingJob job = QuickstartJob();
  RoleOf(job, type).capacity = capacity;
  return job;
}

json TermsOf(const json& pod) {
  return pod["spec"]["affinity"]["nodeAffinity"][kRequired]["nodeSelectorTerms"];
}

bool Tolerates(const json& pod, const std::string& key) {
  for (const json& toleration : pod["spec"].value("tolerations", json::array())) {
    if (toleration["key"] == key) return true;
  }
  return false;
}

TEST(NodeChoiceTest, SpotIsAnyCloudsLabelAndItsTaintIsTolerated) {
  const json pod = PodWith(RoleType::kCpuWorker, json(), {},
                           JobWith(RoleType::kCpuWorker, api::Capacity::kSpot));
  const json terms = TermsOf(pod);
  ASSERT_EQ(terms.size(), Settings().spot_labels.size()) << "any of them will do";
  for (const json& term : terms) {
    ASSERT_EQ(term["matchExpressions"].size(), 1u);
    EXPECT_EQ(term["matchExpressions"][0]["operator"], "In");
  }
  EXPECT_TRUE(Tolerates(pod, "cloud.google.com/gke-spot"));
}

TEST(NodeChoiceTest, OnDemandIsANodeWithoutAnyOfThem) {
  const json pod = PodWith(RoleType::kGpuWorker, json(), {},
                           JobWith(RoleType::kGpuWorker, api::Capacity::kOnDemand));
  const json terms = TermsOf(pod);
  ASSERT_EQ(terms.size(), 1u);
  EXPECT_EQ(terms[0]["matchExpressions"].size(), Settings().spot_labels.size());
  EXPECT_EQ(terms[0]["matchExpressions"][0]["operator"], "NotIn");
  EXPECT_FALSE(Tolerates(pod, "cloud.google.com/gke-spot"));
}

TEST(NodeChoiceTest, AnyToleratesSpotAndAsksForNothing) {
  const json pod =
      PodWith(RoleType::kCpuWorker, json(), {}, JobWith(RoleType::kCpuWorker, api::Capacity::kAny));
  EXPECT_FALSE(pod["spec"]["affinity"].contains("nodeAffinity"));
  EXPECT_TRUE(Tolerates(pod, "kubernetes.azure.com/scalesetpriority"));
}

// Terms are alternatives: added to the list, ours would have let the pod go where the user's
// forbid.
TEST(NodeChoiceTest, TheTemplatesOwnRequirementsHoldBesides) {
  const json ssd = {{"key", "disk"}, {"operator", "In"}, {"values", {"ssd"}}};
  const json big = {{"key", "size"}, {"operator", "In"}, {"values", {"big"}}};
  const json given = {
      {"spec",
       {{"affinity",
         {{"nodeAffinity",
           {{kRequired,
             {{"nodeSelectorTerms",
               {{{"matchExpressions", {ssd}}}, {{"matchExpressions", {big}}}}}}}}}}}}}};
  Settings settings;
  settings.spot_labels = {{"a", "spot"}, {"b", "spot"}};
  const json terms = TermsOf(PodWith(RoleType::kCpuWorker, given, settings,
                                     JobWith(RoleType::kCpuWorker, api::Capacity::kSpot)));
  ASSERT_EQ(terms.size(), 4u);
  for (const json& term : terms) ASSERT_EQ(term["matchExpressions"].size(), 2u);
  EXPECT_EQ(terms[0]["matchExpressions"][0], ssd);
  EXPECT_EQ(terms[3]["matchExpressions"][0], big);
  EXPECT_EQ(terms[3]["matchExpressions"][1]["key"], "b");
}

TEST(NodeChoiceTest, PodsOfAJobPreferOneZoneUnlessItSaysOtherwise) {
  api::HeteroTrainingJob job = QuickstartJob();
  const json preferred = PodWith(RoleType::kCpuWorker, json(), {}, job);
  const json& term = preferred["spec"]["affinity"]["podAffinity"][kPreferred][0]["podAffinityTerm"];
  EXPECT_EQ(term["topologyKey"], "topology.kubernetes.io/zone");
  EXPECT_EQ(term["labelSelector"]["matchLabels"]["training.hetero.dev/job-uid"], kUid);

  job.spec.placement.emplace().zone = api::ZoneChoice::kSame;
  const json same = PodWith(RoleType::kCpuWorker, json(), {}, job);
  EXPECT_EQ(same["spec"]["affinity"]["podAffinity"][kRequired][0]["topologyKey"],
            "topology.kubernetes.io/zone");
  EXPECT_FALSE(same["spec"]["affinity"]["podAffinity"].contains(kPreferred));

  job.spec.placement->zone = api::ZoneChoice::kAny;
  EXPECT_FALSE(PodWith(RoleType::kCpuWorker, json(), {}, job)["spec"].contains("affinity"));
}

TEST(NodeChoiceTest, RanksOfOneRolePreferOneNode) {
  api::HeteroTrainingJob job = QuickstartJob();
  RoleOf(job, RoleType::kGpuWorker).replicas = 2;
  const json pod = PodWith(RoleType::kGpuWorker, json(), {}, job);
  const json& preferred = pod["spec"]["affinity"]["podAffinity"][kPreferred];
  ASSERT_EQ(preferred.size(), 2u);
  EXPECT_EQ(preferred[1]["podAffinityTerm"]["topologyKey"], "kubernetes.io/hostname");
  EXPECT_LT(preferred[1]["weight"], preferred[0]["weight"]);
}

TEST(NodeChoiceTest, ConsolidationSparesTheHeadAndTrainersUnlessTheTemplateSaysOtherwise) {
  const auto annotations = [](RoleType type, const json& given) {
    return PodWith(type, given)["metadata"]["annotations"];
  };
  EXPECT_EQ(annotations(RoleType::kHead, json())["karpenter.sh/do-not-disrupt"], "true");
  EXPECT_EQ(
      annotations(RoleType::kGpuWorker, json())["cluster-autoscaler.kubernetes.io/safe-to-evict"],
      "false");
  EXPECT_FALSE(annotations(RoleType::kCpuWorker, json()).contains("karpenter.sh/do-not-disrupt"));
  const json given = {{"metadata", {{"annotations", {{"karpenter.sh/do-not-disrupt", "false"}}}}}};
  EXPECT_EQ(annotations(RoleType::kHead, given)["karpenter.sh/do-not-disrupt"], "false");
}

// Of its own image it may know better.
TEST(NodeChoiceTest, ATemplateThatChoosesAnArchitectureByAffinityIsLeftAlone) {
  const json given = {
      {"spec",
       {{"affinity",
         {{"nodeAffinity",
           {{kRequired,
             {{"nodeSelectorTerms",
               {{{"matchExpressions",
                  {{{"key", "kubernetes.io/arch"}, {"operator", "Exists"}}}}}}}}}}}}}}}};
  EXPECT_FALSE(
      PodWith(RoleType::kHead, given)["spec"]["nodeSelector"].contains("kubernetes.io/arch"));
}

TEST(NodeChoiceTest, OurProgramsAreForOneArchitecture) {
  for (const RoleType type : {RoleType::kHead, RoleType::kCpuWorker, RoleType::kGpuWorker}) {
    EXPECT_EQ(PodWith(type, json())["spec"]["nodeSelector"]["kubernetes.io/arch"], "amd64");
  }
}

}  // namespace
}  // namespace hetero::children
