// A queued job's Workload, as the API server gets to see it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_cluster.h"
#include "operator/reconcile/project.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Fate = FakeApi::Fate;
using State = plan::HeadReport::State;

const json kLabels = {{"kueue.x-k8s.io/queue-name", "team"},
                      {"kueue.x-k8s.io/priority-class", "high"}};

class Queue : public ::testing::Test {
 protected:
  static void Furnish(FakeCluster& cluster) {
    cluster.api.Put("resourceflavors", "/on-demand", json::parse(R"({"spec": {
        "nodeLabels": {"pool": "gpu"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}})"));
    cluster.api.Put("workloadpriorityclasses", "/high", {{"value", 1000}});
    cluster.CreateJob("vit", "", kLabels);
  }
  static void Settle(FakeCluster& cluster) { ASSERT_TRUE(cluster.Settle("vit")); }
  static void Train(FakeCluster& cluster) {
    cluster.RunPods();
    Settle(cluster);
    cluster.HeadSays("vit", State::kRunning);
    Settle(cluster);
  }
  static json Workload(const FakeCluster& cluster) {
    return cluster.api.Objects("workloads").at("team/vit-gang");
  }
  // Admitted, trained, evicted, admitted again, trained to the end.
  static std::string Live(FakeCluster& cluster) {
    Furnish(cluster);
    Settle(cluster);
    cluster.Admit("vit");
    Settle(cluster);
    Train(cluster);
    cluster.Evict("vit");
    Settle(cluster);
    cluster.HeadSays("vit", State::kStopped);
    Settle(cluster);
    cluster.FinishTerminating();
    cluster.clock.Advance(Expectations::kPatience);
    Settle(cluster);
    EXPECT_FALSE(Workload(cluster)["status"].contains("admission"));
    EXPECT_TRUE(cluster.api.Objects("pods").empty());
    cluster.Admit("vit");
    Settle(cluster);
    Train(cluster);
    cluster.HeadSays("vit", State::kSucceeded);
    Settle(cluster);
    cluster.FinishTerminating();
    cluster.clock.Advance(Expectations::kPatience);
    Settle(cluster);
    json status = Workload(cluster)["status"];
    for (json& condition : status["conditions"]) condition.erase("lastTransitionTime");
    json left;
    for (const char* plural : {"pods", "services", "secrets", "configmaps", "workloads"}) {
      for (const auto& [key, object] : cluster.api.Objects(plural)) left[plural].push_back(key);
    }
    return json{{"workload", status},
                {"left", left},
                {"attempt", cluster.Status("vit").attempt},
                {"restarts", cluster.Status("vit").restarts},
                {"succeeded", cluster.Status("vit").Is(api::ConditionType::kSucceeded)}}
        .dump(1);
  }

  FakeCluster cluster_;
};

TEST_F(Queue, TheWorkloadSaysWhatThePodsAskFor) {
  Furnish(cluster_);
  Settle(cluster_);
  const json workload = Workload(cluster_);
  EXPECT_EQ(workload["apiVersion"], "kueue.x-k8s.io/v1beta2");
  const json& metadata = workload["metadata"];
  const json job = cluster_.api.Objects("heterotrainingjobs").at("team/vit");
  EXPECT_EQ(metadata["ownerReferences"][0]["uid"], job["metadata"]["uid"]);
  EXPECT_EQ(metadata["ownerReferences"][0]["controller"], true);
  EXPECT_EQ(metadata["labels"]["kueue.x-k8s.io/job-uid"], job["metadata"]["uid"]);
  const json& spec = workload["spec"];
  EXPECT_EQ(spec["queueName"], "team");
  EXPECT_EQ(spec["priority"], 1000);
  EXPECT_EQ(spec["priorityClassRef"]["kind"], "WorkloadPriorityClass");
  EXPECT_EQ(spec["priorityClassRef"]["name"], "high");
  ASSERT_EQ(spec["podSets"].size(), 3u);
  EXPECT_EQ(spec["podSets"][1]["name"], "cpu");
  EXPECT_EQ(spec["podSets"][1]["count"], 2);
  const json& gpu = spec["podSets"][2]["template"]["spec"]["containers"][0];
  EXPECT_EQ(gpu["name"], "runtime");
  EXPECT_EQ(gpu["resources"]["limits"]["nvidia.com/gpu"], "1") << gpu;
  EXPECT_TRUE(cluster_.api.Objects("pods").empty());
  EXPECT_TRUE(cluster_.api.Objects("services").empty());
}

TEST_F(Queue, PodsAreThoseOfTheAdmission) {
  Furnish(cluster_);
  Settle(cluster_);
  cluster_.Admit("vit");
  Settle(cluster_);
  ASSERT_EQ(cluster_.api.Objects("pods").size(), 4u);
  for (const auto& [key, pod] : cluster_.api.Objects("pods")) {
    EXPECT_EQ(pod["spec"]["nodeSelector"]["pool"], "gpu") << key;
    EXPECT_EQ(pod["spec"]["tolerations"][0]["key"], "gpu") << key;
    EXPECT_EQ(pod["metadata"]["annotations"]["kueue.x-k8s.io/workload"], "vit-gang");
    EXPECT_EQ(pod["metadata"]["labels"]["kueue.x-k8s.io/podset"],
              pod["metadata"]["labels"]["training.hetero.dev/role"]);
    EXPECT_FALSE(pod["metadata"]["labels"].contains("kueue.x-k8s.io/queue-name"))
        << "Kueue would take the pod for a job of its own";
  }
}

// Conditions of others, which Kueue's own controllers go by, stay as they are.
TEST_F(Queue, APatchOfTheStatusKeepsWhatOthersWrote) {
  Furnish(cluster_);
  Settle(cluster_);
  cluster_.Admit("vit");
  Settle(cluster_);
  const json before = Workload(cluster_)["status"]["conditions"];
  Train(cluster_);
  const json after = Workload(cluster_)["status"]["conditions"];
  ASSERT_EQ(after.size(), before.size() + 1);
  for (size_t i = 0; i < before.size(); ++i) {
    for (const char* field : {"type", "status", "reason", "message", "lastTransitionTime"}) {
      EXPECT_EQ(after[i][field], before[i][field]);
    }
  }
  EXPECT_EQ(after.back()["type"], "PodsReady");
  EXPECT_TRUE(Workload(cluster_)["status"].contains("admission"));
}

// It would evict the job for its pods that are not ready.
TEST_F(Queue, ThatTheJobTrainsIsToldAlthoughFurtherCpuWorkersAreRefused) {
  Furnish(cluster_);
  cluster_.api.Change("heterotrainingjobs", "team/vit", [](json& job) {
    job["spec"]["roles"][1]["replicas"] = 3;
    job["spec"]["roles"][1]["minReplicas"] = 1;
  });
  cluster_.api.SetIntercept([](const kube::Request& request) -> std::optional<kube::Response> {
    const bool refused = request.method == "POST" &&
                         request.path.find("/pods") != std::string::npos &&
                         request.body.find("vit-cpu-2") != std::string::npos;
    if (!refused) return {};
    return FakeApi::Error(403, "Forbidden", "pods is forbidden: exceeded quota: small");
  });
  Settle(cluster_);
  cluster_.Admit("vit");
  Settle(cluster_);
  Train(cluster_);
  EXPECT_EQ(ReasonOf(cluster_.Status("vit"), api::ConditionType::kPodsCreated), "QuotaExceeded");
  EXPECT_EQ(Workload(cluster_)["status"]["conditions"].back()["type"], "PodsReady");
}

// Kueue changed it after it was read: what was to be written may be wrong by now.
TEST_F(Queue, AStaleViewOverwritesNothing) {
  Furnish(cluster_);
  Settle(cluster_);
  cluster_.Admit("vit");
  Settle(cluster_);
  cluster_.RunPods();
  Settle(cluster_);
  cluster_.Sync();
  cluster_.Evict("vit");
  cluster_.HeadSays("vit", State::kRunning);
  ASSERT_TRUE(cluster_.Pass("vit").ok());
  const json conditions = Workload(cluster_)["status"]["conditions"];
  EXPECT_EQ(conditions.back()["type"], "Evicted") << conditions;
  Settle(cluster_);
  EXPECT_EQ(ReasonOf(cluster_.Status("vit"), api::ConditionType::kQueued), "Evicted");
}

// The watch is late: what this process wrote itself it knows.
TEST_F(Queue, NothingIsWrittenTwiceWhileTheWatchIsLate) {
  Furnish(cluster_);
  cluster_.Sync();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(cluster_.Pass("vit").ok());
  EXPECT_EQ(CountWrites(cluster_.api, "POST", "/workloads"), 1);
  Settle(cluster_);
  cluster_.Admit("vit");
  Settle(cluster_);
  cluster_.RunPods();
  Settle(cluster_);
  cluster_.HeadSays("vit", State::kRunning);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(cluster_.Pass("vit").ok());
  EXPECT_EQ(CountWrites(cluster_.api, "PATCH", "/workloads/vit-gang/status"), 1);
}

// Kueue's webhook is away, or a Workload is refused: pods that have to be replaced do not wait.
TEST_F(Queue, WhatKueueRefusesKeepsNoPodFromBeingReplaced) {
  Furnish(cluster_);
  Settle(cluster_);
  cluster_.Admit("vit");
  Settle(cluster_);
  Train(cluster_);
  cluster_.api.SetIntercept([](const kube::Request& request) -> std::optional<kube::Response> {
    if (request.path.find("/workloads") == std::string::npos) return std::nullopt;
    return FakeApi::Error(500, "InternalError", "failed calling webhook \"vworkload.kb.io\"");
  });
  cluster_.EndContainer("vit-gpu-0", 1, "out of memory");
  for (int i = 0; i < 10; ++i) {
    cluster_.Sync();
    (void)cluster_.Pass("vit");
    cluster_.FinishTerminating();
    cluster_.clock.Advance(std::chrono::seconds(1));
  }
  EXPECT_EQ(cluster_.Status("vit").attempt, 2);
  EXPECT_EQ(cluster_.Pod("vit-gpu-0").attempt, 2);
}

TEST_F(Queue, WritesOfAJobAreFew) {
  Live(cluster_);
  size_t most = cluster_.api.writes().size();
  FakeCluster other;
  Furnish(other);
  Settle(other);
  other.Admit("vit");
  Settle(other);
  Train(other);
  other.HeadSays("vit", State::kSucceeded);
  Settle(other);
  other.FinishTerminating();
  other.clock.Advance(Expectations::kPatience);
  Settle(other);
  EXPECT_LE(other.api.writes().size(), 40u) << "of one job of 4 pods, without an eviction";
  EXPECT_LE(most, 60u);
}

class QueueCrash : public Queue, public ::testing::WithParamInterface<Fate> {};

TEST_P(QueueCrash, AtAnyWriteLeadsToTheSameEnd) {
  const std::string end = DieAtEachWrite(Live, GetParam());
  EXPECT_THAT(end, HasSubstr("Finished"));
  EXPECT_THAT(end, HasSubstr("\"attempt\": 2"));
}

INSTANTIATE_TEST_SUITE_P(BeforeAndAfterTheServer, QueueCrash,
                         ::testing::Values(Fate::kLoseRequest, Fate::kLoseReply));

}  // namespace
}  // namespace hetero::reconcile
