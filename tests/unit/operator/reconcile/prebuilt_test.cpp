// A Workload that others made for a job, as MultiKueue does in the cluster that is to run it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_cluster.h"
#include "operator/reconcile/pod_set_difference.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr char kKey[] = "team/vit-gang";

class Prebuilt : public ::testing::Test {
 protected:
  // The Workload is the one that an operator elsewhere made; here nobody owns it.
  Prebuilt() {
    FakeCluster elsewhere;
    elsewhere.CreateJob("vit", "", {{"kueue.x-k8s.io/queue-name", "team"}});
    EXPECT_TRUE(elsewhere.Settle("vit"));
    workload_ = elsewhere.api.Objects("workloads").at(kKey);
    workload_["metadata"].erase("ownerReferences");
    workload_["metadata"].erase("uid");
    workload_["metadata"]["labels"]["kueue.x-k8s.io/multikueue-origin"] = "multikueue";
    cluster_.api.Put("resourceflavors", "/on-demand", json::parse(R"({"spec": {}})"));
  }
  void Apply() {
    cluster_.CreateJob("vit", "",
                       {{"kueue.x-k8s.io/queue-name", "team"},
                        {"kueue.x-k8s.io/prebuilt-workload-name", "vit-gang"}});
  }
  void PassTwice() {
    for (int i = 0; i < 2; ++i) {
      cluster_.Sync();
      ASSERT_TRUE(cluster_.Pass("vit").ok());
      cluster_.clock.Advance(std::chrono::seconds(6));
    }
    cluster_.Sync();
  }
  std::string Message() const {
    return cluster_.Status("vit").Find(api::ConditionType::kQueued)->message;
  }
  json Workload() const { return cluster_.api.Objects("workloads").at(kKey); }
  json Job() const { return cluster_.api.Objects("heterotrainingjobs").at("team/vit"); }

  FakeCluster cluster_;
  json workload_;
};

TEST_F(Prebuilt, IsOwnedByTheJobFromThenOn) {
  workload_["metadata"]["ownerReferences"] = json::parse(
      R"([{"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "other-uid"}])");
  cluster_.api.Put("workloads", kKey, workload_);
  Apply();
  ASSERT_TRUE(cluster_.Settle("vit"));
  const json metadata = Workload()["metadata"];
  ASSERT_EQ(metadata["ownerReferences"].size(), 2u) << metadata;
  EXPECT_EQ(metadata["ownerReferences"][0]["uid"], "other-uid");
  EXPECT_EQ(metadata["ownerReferences"][1]["uid"], Job()["metadata"]["uid"]);
  EXPECT_EQ(metadata["ownerReferences"][1]["controller"], true);
  EXPECT_EQ(metadata["labels"]["training.hetero.dev/job-uid"], Job()["metadata"]["uid"]);
  EXPECT_EQ(metadata["labels"]["kueue.x-k8s.io/multikueue-origin"], "multikueue");
  EXPECT_EQ(CountWrites(cluster_.api, "POST", "/workloads"), 0);
  EXPECT_EQ(CountWrites(cluster_.api, "PATCH", "/workloads/vit-gang"), 1);
  cluster_.Admit("vit");
  ASSERT_TRUE(cluster_.Settle("vit"));
  EXPECT_EQ(cluster_.api.Objects("pods").size(), 4u);
}

// It was owned first, and compared then.
TEST_F(Prebuilt, OfAnotherQueueIsRefusedAndNotTaken) {
  workload_["spec"]["queueName"] = "others";
  cluster_.api.Put("workloads", kKey, workload_);
  Apply();
  PassTwice();
  EXPECT_EQ(ReasonOf(cluster_.Status("vit"), api::ConditionType::kQueued), "Inadmissible");
  EXPECT_THAT(Message(), HasSubstr("is in queue others"));
  EXPECT_FALSE(Workload()["metadata"].contains("ownerReferences"));
}

TEST_F(Prebuilt, ThatIsFinishedIsRefused) {
  workload_["status"]["conditions"] =
      json::parse(R"([{"type": "Finished", "status": "True", "reason": "OutOfSync"}])");
  cluster_.api.Put("workloads", kKey, workload_);
  Apply();
  PassTwice();
  EXPECT_THAT(Message(), HasSubstr("is Finished"));
  EXPECT_FALSE(Workload()["metadata"].contains("ownerReferences"));
}

TEST_F(Prebuilt, OfSomebodyElseIsRefused) {
  workload_["metadata"]["ownerReferences"] = json::parse(
      R"([{"apiVersion": "batch/v1", "kind": "Job", "name": "theirs", "uid": "u", "controller": true}])");
  cluster_.api.Put("workloads", kKey, workload_);
  Apply();
  PassTwice();
  EXPECT_EQ(ReasonOf(cluster_.Status("vit"), api::ConditionType::kQueued), "Inadmissible");
  EXPECT_THAT(Message(), HasSubstr("vit-gang, which metadata.labels["
                                   "kueue.x-k8s.io/prebuilt-workload-name] names, belongs to Job "
                                   "theirs"));
  EXPECT_EQ(CountWrites(cluster_.api, "PATCH", "/workloads"), 0);
  EXPECT_TRUE(cluster_.api.Objects("pods").empty());
}

TEST_F(Prebuilt, ForOtherPodsIsRefused) {
  workload_["spec"]["podSets"][1]["count"] = 7;
  cluster_.api.Put("workloads", kKey, workload_);
  Apply();
  PassTwice();
  EXPECT_THAT(Message(), HasSubstr("its pod set cpu is of 7 pods and has to be of "));
  EXPECT_EQ(CountWrites(cluster_.api, "PATCH", "/workloads"), 0);
}

TEST_F(Prebuilt, IsWaitedForUntilItIsThere) {
  Apply();
  PassTwice();
  EXPECT_EQ(ReasonOf(cluster_.Status("vit"), api::ConditionType::kQueued), "Inadmissible");
  EXPECT_THAT(Message(), HasSubstr("does not exist"));
  cluster_.api.Put("workloads", kKey, workload_);
  cluster_.clock.Advance(std::chrono::seconds(6));
  ASSERT_TRUE(cluster_.Settle("vit"));
  EXPECT_EQ(Workload()["metadata"]["ownerReferences"][0]["uid"], Job()["metadata"]["uid"]);
  EXPECT_EQ(ReasonOf(cluster_.Status("vit"), api::ConditionType::kQueued), "Pending");
}

TEST(QuantityValue, IsThatOfResourceQuantities) {
  EXPECT_EQ(QuantityValue("500m"), 0.5);
  EXPECT_EQ(QuantityValue("0.5"), 0.5);
  EXPECT_EQ(QuantityValue("1e3"), 1000);
  EXPECT_EQ(QuantityValue("1k"), 1000);
  EXPECT_EQ(QuantityValue("16Gi"), 16.0 * (1 << 30));
  EXPECT_EQ(QuantityValue("2E"), 2e18);
  for (const char* wrong : {"", "many", "1X", "Gi", "1 Gi", "1.2.3"}) {
    EXPECT_FALSE(QuantityValue(wrong).has_value()) << wrong;
  }
}

json Sets(const std::string& resources, int count = 1) {
  json workload = json::parse(R"({"spec": {"podSets": [{"name": "gpu", "template": {"spec":
      {"containers": [{"name": "runtime"}]}}}]}})");
  json& set = workload["spec"]["podSets"][0];
  set["count"] = count;
  set["template"]["spec"]["containers"][0]["resources"] = json::parse(resources);
  return workload;
}

// A server writes quantities its own way, and other clusters have other images.
TEST(PodSetDifference, IsInWhatCostsQuotaAlone) {
  const json needed = Sets(R"({"requests": {"cpu": "1000m", "memory": "1024Mi"}})");
  json made = Sets(R"({"requests": {"cpu": 1, "memory": "1Gi"}})");
  made["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["image"] = "mirror/trainer:1";
  EXPECT_EQ(PodSetDifference(made, needed), "");
  EXPECT_EQ(PodSetDifference(Sets(R"({"limits": {"cpu": 1, "memory": "1Gi"}})"), needed), "");
  EXPECT_EQ(PodSetDifference(Sets(R"({"requests": {"cpu": "2", "memory": "1Gi"}})"), needed),
            "pod set gpu, container runtime: cpu is 2 and has to be 1000m");
  EXPECT_EQ(PodSetDifference(Sets(R"({"requests": {"cpu": "1"}})"), needed),
            "pod set gpu, container runtime: memory is nothing and has to be 1024Mi");
  EXPECT_EQ(PodSetDifference(json::object(), needed), "it has no pod set gpu");
  EXPECT_EQ(PodSetDifference(needed, json::object()), "the job has no pod set gpu");
}

}  // namespace
}  // namespace hetero::reconcile
