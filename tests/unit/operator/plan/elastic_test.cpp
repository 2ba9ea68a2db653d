// CPU workers that a busy queue takes back one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using State = HeadReport::State;

// A job `vit` with four CPU workers, of which it can do without three.
class ElasticTest : public ::testing::Test {
 protected:
  ElasticTest() : cluster_(Job().Cpus(4, 1).Gpus(1).Queue("team").ElasticClass("low")) {
    cluster_.queues.support = ObservedQueues::Support::kServed;
    cluster_.queues.flavors["on-demand"] = {.node_labels = {{"pool", "gpu"}}};
    cluster_.queues.flavors["spot"] = {.node_labels = {{"pool", "spot"}}};
    cluster_.queues.priorities["low"] = -10;
  }
  // The gang.
  void Train() {
    cluster_.Settle();
    cluster_.Admit();
    cluster_.RunJob();
    ASSERT_TRUE(cluster_.status().Is(ConditionType::kRunning));
  }
  // With these of its extra workers.
  void TrainWith(const std::vector<int>& indices) {
    Train();
    for (const int index : indices) cluster_.Admit(NameOf(index), "spot");
    cluster_.Settle();
    cluster_.StartAll();
    cluster_.HeadSays(State::kRunning);
    cluster_.Settle();
  }
  static std::string NameOf(int index) { return "vit-cpu-" + std::to_string(index); }
  std::vector<std::string> CpuPods() const {
    std::vector<std::string> names;
    for (const auto& [name, pod] : cluster_.pods) {
      if (pod->role == "cpu") names.push_back(name);
    }
    return names;
  }
  std::string Message() const { return cluster_.Condition(ConditionType::kQueued).message; }

  ModelCluster cluster_;
};

TEST_F(ElasticTest, TheGangHasWhatTheJobCannotDoWithoutAndTheRestIsAskedForWhileItTrains) {
  cluster_.Settle();
  EXPECT_EQ(cluster_.Gang().CountOf("cpu"), 1);
  cluster_.Admit();
  cluster_.Settle();
  EXPECT_EQ(cluster_.workloads.size(), 1u) << "before it trains";
  EXPECT_EQ(cluster_.pods.size(), 3u);
  cluster_.RunJob();
  EXPECT_EQ(cluster_.workloads.size(), 4u);
  EXPECT_EQ(cluster_.pods.size(), 3u) << "nothing of it is admitted";
  const ObservedWorkload& extra = cluster_.Workload("vit-cpu-2");
  EXPECT_EQ(extra.priority_class, "low");
  EXPECT_EQ(extra.CountOf("cpu"), 1);
  EXPECT_EQ(cluster_.State(ConditionType::kPodsCreated), "True/AllCreated");
  EXPECT_EQ(cluster_.status().registered, "2/5");

  cluster_.Admit("vit-cpu-2", "spot");
  cluster_.Settle();
  EXPECT_THAT(CpuPods(), ElementsAre("vit-cpu-0", "vit-cpu-2"));
  EXPECT_EQ(cluster_.placements.at("vit-cpu-2")->workload, "vit-cpu-2");
  EXPECT_EQ(cluster_.placements.at("vit-cpu-2")->node_selector.at("pool"), "spot");
  EXPECT_EQ(cluster_.placements.at("vit-cpu-0")->workload, "vit-gang");
  cluster_.StartAll();
  cluster_.Settle();
  EXPECT_TRUE(cluster_.Workload("vit-cpu-2").Is("PodsReady"));
}

TEST_F(ElasticTest, OneThatIsTakenBackLeavesAloneAndComesBack) {
  TrainWith({1, 2, 3});
  EXPECT_EQ(CpuPods().size(), 4u);
  cluster_.Evict("Preempted", "others", "vit-cpu-2");
  cluster_.Settle();
  EXPECT_TRUE(cluster_.Pod("vit-cpu-2").deletion_time.has_value());
  EXPECT_EQ(cluster_.CountOf("release vit-cpu-2"), 0u) << "its pod is still there";
  cluster_.Vanish("vit-cpu-2");
  cluster_.Settle();
  EXPECT_EQ(cluster_.CountOf("release vit-cpu-2"), 1u);
  EXPECT_THAT(CpuPods(), ElementsAre("vit-cpu-0", "vit-cpu-1", "vit-cpu-3"));
  EXPECT_TRUE(cluster_.status().Is(ConditionType::kRunning));
  EXPECT_EQ(cluster_.CountOf("stop head"), 0u);
  cluster_.Admit("vit-cpu-2", "spot");
  cluster_.Settle();
  EXPECT_EQ(CpuPods().size(), 4u);
  EXPECT_EQ(cluster_.status().attempt, 1);
  EXPECT_EQ(cluster_.status().restarts, 0);
}

TEST_F(ElasticTest, OneThatIsWantedNoMoreGoesPodFirst) {
  TrainWith({1, 2, 3});
  cluster_.ChangeSpec([](api::Spec& spec) { spec.roles[1].replicas = 2; });
  cluster_.Settle();
  EXPECT_TRUE(cluster_.Pod("vit-cpu-3").deletion_time.has_value());
  EXPECT_EQ(cluster_.workloads.size(), 4u);
  cluster_.VanishTerminating();
  cluster_.Settle();
  EXPECT_EQ(cluster_.workloads.size(), 2u);
  EXPECT_THAT(CpuPods(), ElementsAre("vit-cpu-0", "vit-cpu-1"));
}

TEST_F(ElasticTest, OneThatFailsIsReplacedUnderItsAdmission) {
  TrainWith({1});
  cluster_.Exit("vit-cpu-1", 1);
  cluster_.Settle();
  EXPECT_EQ(cluster_.Pod("vit-cpu-1").phase, "Pending");
  EXPECT_EQ(cluster_.CountOf("release vit-cpu-1"), 0u);
  EXPECT_EQ(cluster_.CountOf("create vit-cpu-1"), 3u) << "Workload, pod, pod";
}

TEST_F(ElasticTest, TheyGoBeforeTheGangGivesItsQuotaBack) {
  TrainWith({1, 2, 3});
  cluster_.Evict("Preempted", "others");
  cluster_.Settle();
  cluster_.HeadSays(State::kStopped);
  cluster_.Settle();
  EXPECT_EQ(cluster_.workloads.size(), 4u) << "their pods are still there";
  cluster_.VanishTerminating();
  cluster_.Settle();
  EXPECT_EQ(cluster_.workloads.size(), 1u);
  const auto& calls = cluster_.calls;
  const auto at = [&calls](const char* call) {
    return std::find(calls.begin(), calls.end(), call) - calls.begin();
  };
  EXPECT_LT(at("delete vit-cpu-3"), at("release vit-gang"));
  cluster_.Admit();
  cluster_.Settle();
  EXPECT_EQ(cluster_.pods.size(), 3u);
}

// A new operator that cannot read Workloads does not know who was admitted.
TEST_F(ElasticTest, NoneIsMadeAndNoneGoesWhileKueueIsMissing) {
  TrainWith({1});
  cluster_.queues.support = ObservedQueues::Support::kMissing;
  cluster_.workloads.clear();
  cluster_.Settle();
  EXPECT_THAT(CpuPods(), ElementsAre("vit-cpu-0", "vit-cpu-1"));
  EXPECT_FALSE(cluster_.Pod("vit-cpu-1").deletion_time.has_value());
}

TEST_F(ElasticTest, NothingOfThemIsLeftBehindAJob) {
  TrainWith({1, 2});
  cluster_.report().verdict = api::Verdict{.succeeded = true};
  cluster_.HeadSays(State::kSucceeded);
  cluster_.Settle();
  cluster_.VanishTerminating();
  cluster_.Settle();
  EXPECT_EQ(cluster_.workloads.size(), 1u);
  EXPECT_EQ(cluster_.GangState("Finished"), "True/Succeeded");
}

TEST_F(ElasticTest, AClassThatIsNotBelowTheJobsOwnIsNamedAndTheJobGoesOnWithoutThem) {
  cluster_.queues.priorities["low"] = 0;
  Train();
  EXPECT_EQ(cluster_.workloads.size(), 1u);
  EXPECT_EQ(cluster_.State(ConditionType::kQueued), "False/Admitted");
  EXPECT_THAT(Message(),
              AllOf(HasSubstr("spec.scheduling.elasticPriorityClass: low has priority 0"),
                    HasSubstr("not below the job's own (0)")));
  cluster_.queues.priorities.clear();
  cluster_.Settle();
  EXPECT_THAT(Message(), HasSubstr("the cluster has no WorkloadPriorityClass low"));
  cluster_.queues.priorities["low"] = -1;
  cluster_.Settle();
  EXPECT_EQ(cluster_.workloads.size(), 4u);
}

// The head asks for more than the queue gives: they wait there, and go when they are not needed.
TEST(ElasticAutoscaling, AsksTheQueue) {
  ModelCluster cluster(Job().Cpus(1, 1).Autoscale(1, 4).Gpus(1).Queue("team").ElasticClass("low"));
  cluster.queues.support = ObservedQueues::Support::kServed;
  cluster.queues.flavors["on-demand"] = {};
  cluster.queues.priorities["low"] = -10;
  cluster.Settle();
  cluster.Admit();
  cluster.RunJob();
  EXPECT_EQ(cluster.workloads.size(), 1u);
  cluster.sizing["cpu"] = {4, "measured"};
  cluster.HeadSays(State::kRunning);
  cluster.Settle();
  EXPECT_EQ(cluster.workloads.size(), 4u);
  cluster.Admit("vit-cpu-1");
  cluster.Settle();
  EXPECT_EQ(cluster.pods.size(), 4u);
  cluster.sizing["cpu"] = {2, "measured"};
  cluster.HeadSays(State::kRunning);
  cluster.Settle();
  EXPECT_EQ(cluster.workloads.size(), 2u);
  EXPECT_EQ(cluster.pods.size(), 4u);
}

}  // namespace
}  // namespace hetero::plan
