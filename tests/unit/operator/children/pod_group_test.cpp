// The gang of a job, in the words of each scheduler.
#include "operator/children/pod_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/children/names.h"
#include "operator/children/resource_sum.h"
#include "tests/unit/operator/children/golden.h"
#include "tests/unit/operator/children/test_job.h"

namespace hetero::children {
namespace {

using nlohmann::json;

const std::pair<const char*, GangApi> kApis[] = {{"volcano", GangApi::kVolcano},
                                                 {"coscheduling", GangApi::kCoscheduling},
                                                 {"native_workload", GangApi::kNativeWorkload},
                                                 {"native_alpha", GangApi::kNativeAlpha},
                                                 {"native_beta", GangApi::kNativeBeta}};

std::vector<GangRole> Members(const api::HeteroTrainingJob& job) {
  std::vector<GangRole> roles;
  for (const api::Role& role : job.spec.roles) {
    roles.push_back({&role, role.type == api::RoleType::kGpuWorker ? 2 : 1});
  }
  return roles;
}

GangMembership InGang(GangApi gang_api) { return {.gang_api = gang_api, .group = "vit-gang-3"}; }

json PodIn(GangApi gang_api, const json& pod_template = nullptr) {
  api::HeteroTrainingJob job = QuickstartJob();
  api::Role& role = RoleOf(job, api::RoleType::kGpuWorker);
  if (!pod_template.is_null()) role.pod_template = pod_template.dump();
  const GangMembership gang = InGang(gang_api);
  PodSlot slot = SlotOf(role);
  slot.gang = &gang;
  return Pod(job, slot, {});
}

TEST(PodGroupTest, GoldenObjects) {
  api::HeteroTrainingJob job = QuickstartJob();
  job.spec.scheduling.emplace() = {.gang = api::GangScheduler::kVolcano, .queue = "research"};
  json all;
  for (const auto& [name, gang_api] : kApis) {
    all[name] = PodGroup(job, InGang(gang_api), Members(job), {});
  }
  ExpectGolden("pod_groups", all);
}

TEST(PodGroupTest, ThePriorityClassIsThatOfAllTemplates) {
  api::HeteroTrainingJob job = QuickstartJob();
  const auto group = [&job] {
    return PodGroup(job, InGang(GangApi::kVolcano), Members(job), {})["spec"];
  };
  EXPECT_FALSE(group().contains("priorityClassName"));
  EXPECT_FALSE(group().contains("queue"));
  for (api::Role& role : job.spec.roles) {
    role.pod_template = R"({"spec": {"priorityClassName": "urgent"}})";
  }
  EXPECT_EQ(group()["priorityClassName"], "urgent");
  job.spec.roles.back().pod_template.clear();
  EXPECT_FALSE(group().contains("priorityClassName"));
}

TEST(PodGroupTest, VolcanosPodsNameTheirGroup) {
  const json pod = PodIn(GangApi::kVolcano);
  EXPECT_EQ(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"], "vit-gang-3");
  EXPECT_EQ(pod["spec"]["schedulerName"], "volcano");
}

TEST(PodGroupTest, CoschedulingsPodsAreLabelled) {
  const json pod = PodIn(GangApi::kCoscheduling);
  EXPECT_EQ(pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"], "vit-gang-3");
  EXPECT_EQ(pod["spec"]["schedulerName"], "scheduler-plugins-scheduler");
}

TEST(PodGroupTest, TheTemplatesSchedulerStays) {
  for (const GangApi gang_api : {GangApi::kVolcano, GangApi::kCoscheduling}) {
    const json pod = PodIn(gang_api, {{"spec", {{"schedulerName", "default-scheduler"}}}});
    EXPECT_EQ(pod["spec"]["schedulerName"], "default-scheduler");
  }
}

TEST(PodGroupTest, KubernetesOwnGangsStandInThePodsSpec) {
  const json old = PodIn(GangApi::kNativeWorkload);
  EXPECT_EQ(old["spec"]["workloadRef"], json({{"name", "vit-gang-3"}, {"podGroup", "gang"}}));
  EXPECT_FALSE(old["spec"].contains("schedulerName"));
  for (const GangApi gang_api : {GangApi::kNativeAlpha, GangApi::kNativeBeta}) {
    EXPECT_EQ(PodIn(gang_api)["spec"]["schedulingGroup"], json({{"podGroupName", "vit-gang-3"}}));
  }
}

TEST(PodGroupTest, OthersHaveNothingOfIt) {
  const json pod = Pod(QuickstartJob(), SlotOf(QuickstartJob().spec.roles.at(0)), {});
  EXPECT_FALSE(pod["spec"].contains("schedulerName"));
}

// A label's value has 63 characters at most, a job's name 38.
TEST(PodGroupTest, TheNameOfTheLastAttemptFitsALabel) {
  EXPECT_LE(PodGroupName({.name = std::string(38, 'a')}, 1'000'000'000).size(), 63u);
}

TEST(PodGroupTest, TheJobsProcessesDoNotReadOfIt) {
  api::HeteroTrainingJob job = QuickstartJob();
  job.spec.scheduling.emplace() = {.gang = api::GangScheduler::kVolcano, .queue = "research"};
  const auto document = [&job] {
    return json::parse(ConfigMap(job, {}, "", "")["data"]["job.json"].get<std::string>());
  };
  EXPECT_FALSE(document()["spec"].contains("scheduling"));
  job.spec.scheduling->elastic_priority_class = "borrowed";
  EXPECT_EQ(document()["spec"]["scheduling"], json({{"elasticPriorityClass", "borrowed"}}));
}

TEST(ResourceSumTest, QuantitiesAreThoseOfKubernetes) {
  const int64_t unit = 1'000'000'000;
  EXPECT_EQ(ParseQuantity("2"), 2 * unit);
  EXPECT_EQ(ParseQuantity("500m"), unit / 2);
  EXPECT_EQ(ParseQuantity("0.5"), unit / 2);
  EXPECT_EQ(ParseQuantity("1e3"), 1000 * unit);
  EXPECT_EQ(ParseQuantity("5E-1"), unit / 2);
  EXPECT_EQ(ParseQuantity("1Ki"), 1024 * unit);
  EXPECT_EQ(ParseQuantity("1.5Gi"), absl::int128(3) * (1 << 29) * unit);
  EXPECT_EQ(ParseQuantity("2T"), absl::int128(2'000'000'000'000) * unit);
  EXPECT_EQ(ParseQuantity("3E"), absl::int128(3'000'000'000'000'000'000) * unit);
  EXPECT_EQ(ParseQuantity("100n"), 100);
  EXPECT_EQ(ParseQuantity("0.1n"), 1) << "rounded up";
  // As tools write thirds: these were 10^19 cores, and the gang waited for ever.
  EXPECT_EQ(ParseQuantity("0.3333333333333333"), 333'333'334);
  EXPECT_EQ(ParseQuantity("1.66666666667"), 1'666'666'667);
  EXPECT_EQ(ParseQuantity("0.50000000000"), unit / 2);
  for (const char* none : {"", "-1", "many", "1x", "1.2.3", "1e99", "9999999999999999999"}) {
    EXPECT_EQ(ParseQuantity(none), 0) << none;
  }
  EXPECT_EQ(ParseQuantity("999999999999999999Ei"), ParseQuantity("999999999999999998Ei"));
}

json SumOf(const char* spec, int count) {
  ResourceSum sum;
  sum.AddPods(json::parse(spec), count);
  return sum.ToJson();
}

// https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers
TEST(ResourceSumTest, PodsAskAsTheSchedulerCounts) {
  EXPECT_EQ(SumOf(R"({"containers": [
      {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": 8, "gpu": 1}}},
      {"resources": {"requests": {"cpu": "250m"}}}, {}]})",
                  2),
            json({{"cpu", "1500m"}, {"memory", "2147483648"}, {"gpu", "2"}}));
  EXPECT_EQ(SumOf(R"({"containers": [{"resources": {"requests": {"cpu": 1}}}],
      "initContainers": [{"resources": {"requests": {"cpu": 3}}}]})",
                  1),
            json({{"cpu", "3"}}));
  EXPECT_EQ(SumOf(R"({"containers": [{"resources": {"requests": {"cpu": 2}}}],
      "initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"cpu": 1}}},
                         {"resources": {"requests": {"cpu": "1500m"}}}],
      "overhead": {"cpu": "100m"}})",
                  1),
            json({{"cpu", "3100m"}}));
  EXPECT_EQ(SumOf(R"({"containers": [{"resources": {"requests": {"cpu": 2, "gpu": 1}}}],
      "resources": {"requests": {"cpu": 4}, "limits": {"gpu": 5, "memory": "1Ki"}}})",
                  1),
            json({{"cpu", "4"}, {"gpu", "1"}, {"memory", "1024"}}));
  EXPECT_EQ(SumOf(R"({"containers": "none", "overhead": []})", 3), json::object());
}

}  // namespace
}  // namespace hetero::children
