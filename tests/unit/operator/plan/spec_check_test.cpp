// Specs that this operator cannot use: before a job begins, while it runs, while it is suspended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/labels.h"
#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kBadTemplate[] = R"({"spec": {"restartPolicy": "Always"}})";

std::map<std::string, std::string> Uids(const ModelCluster& cluster) {
  std::map<std::string, std::string> uids;
  for (const auto& [name, pod] : cluster.pods) uids[name] = pod->uid;
  return uids;
}

// What the parser of this version says of the stored object.
void Refuse(ModelCluster& cluster, const std::string& path) {
  cluster.Change([&](ObservedJob& job) { job.errors = {{path, "must be something else"}}; });
}

// N-1 began the job, N takes over and is stricter.
TEST(VersionSkew, AStricterOperatorFailsNoRunningJob) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  const auto before = Uids(cluster);
  Refuse(cluster, "spec.training.batchSizePerWorker");
  cluster.Settle();
  EXPECT_FALSE(cluster.status().finished());
  EXPECT_EQ(Uids(cluster), before);
  EXPECT_EQ(cluster.State(ConditionType::kSpecIgnored), "True/InvalidSpec");
  EXPECT_THAT(cluster.Condition(ConditionType::kSpecIgnored).message,
              AllOf(HasSubstr("spec.training.batchSizePerWorker: must be something else"),
                    HasSubstr("goes on as it was begun")));
  EXPECT_EQ(cluster.CountOf("SpecIgnored"), 1u) << "told once";

  // Failures are still made good, and the end is still seen.
  cluster.Exit("vit-gpu-0", 1);
  cluster.Settle();
  EXPECT_EQ(cluster.status().restarts, 1);
  EXPECT_EQ(cluster.Pod("vit-gpu-0").phase, "Pending");
  cluster.StartAll();
  cluster.HeadSays(HeadReport::State::kSucceeded);
  cluster.report().verdict = api::Verdict{.succeeded = true};
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kSucceeded), "True/TrainingFinished");
}

TEST(VersionSkew, AnOlderOperatorPassesOverFieldsThatItDoesNotKnow) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  const auto before = Uids(cluster);
  cluster.Change([](ObservedJob& job) { job.unknown_fields = {"spec.training.ema"}; });
  cluster.Settle();
  EXPECT_EQ(Uids(cluster), before);
  EXPECT_EQ(cluster.State(ConditionType::kSpecIgnored), "True/UnknownFields");
  EXPECT_THAT(cluster.Condition(ConditionType::kSpecIgnored).message,
              HasSubstr("spec.training.ema: this operator does not know"));
  EXPECT_EQ(cluster.CountOf("SpecIgnored"), 1u);
  EXPECT_TRUE(cluster.status().Is(ConditionType::kRunning));
  // Upgraded.
  cluster.Change([](ObservedJob& job) { job.unknown_fields.clear(); });
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kSpecIgnored), "False/Followed");
}

TEST(VersionSkew, AJobWithUnknownFieldsBeginsWithoutThem) {
  ModelCluster cluster{Job()};
  cluster.Change([](ObservedJob& job) { job.unknown_fields = {"spec.training.ema"}; });
  cluster.Settle();
  EXPECT_EQ(cluster.pods.size(), 4u);
  EXPECT_EQ(cluster.State(ConditionType::kSpecIgnored), "True/UnknownFields");
}

// Whose pods they are cannot be told, so none is made, and none is taken for surplus.
TEST(VersionSkew, RolesThatCannotBeReadCostNoPod) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  const auto before = Uids(cluster);
  cluster.Change([](ObservedJob& job) {
    job.errors = {{"spec.roles[2].restartScope", "must be one of Pod, Gang, got 'Rank'"}};
    job.pods_known = false;
    job.job.spec.roles.clear();
  });
  cluster.Exit("vit-cpu-0", 1);
  cluster.Settle();
  EXPECT_FALSE(cluster.status().finished());
  EXPECT_EQ(Uids(cluster), before);
  EXPECT_EQ(cluster.State(ConditionType::kSpecIgnored), "True/InvalidSpec");
}

// Changed in a suspension that was not seen, into something that is refused: the running pods are
// those of the earlier spec, and so is observedGeneration.
TEST(VersionSkew, ARefusedChangeOfARunningJobTouchesNothing) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  const auto before = Uids(cluster);
  cluster.ChangeSpec([](api::Spec& spec) { spec.roles[2].name = "trainer"; });
  Refuse(cluster, "spec.training.model");
  cluster.Settle();
  EXPECT_EQ(Uids(cluster), before);
  EXPECT_EQ(cluster.status().observed_generation, 1);
  EXPECT_EQ(cluster.State(ConditionType::kSpecIgnored), "True/InvalidSpec");
}

// Its ConfigMap could only be made of what was understood.
TEST(VersionSkew, ALostConfigMapIsNotMadeOfARefusedSpec) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  Refuse(cluster, "spec.dataset.format");
  cluster.config_map = nullptr;
  cluster.Settle();
  EXPECT_EQ(cluster.config_map, nullptr);
  EXPECT_EQ(cluster.status().attempt, 1);
  cluster.Change([](ObservedJob& job) { job.errors.clear(); });
  cluster.Settle();
  EXPECT_NE(cluster.config_map, nullptr);
  EXPECT_EQ(cluster.status().attempt, 2) << "all certificates are new";
}

TEST(SuspendedSpec, AnInvalidTemplateKeepsTheJobSuspendedAndFailsItNot) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.Suspend();
  ASSERT_TRUE(cluster.status().Is(ConditionType::kSuspended));
  cluster.ChangeSpec([](api::Spec& spec) { spec.roles[1].pod_template = kBadTemplate; });
  cluster.Settle();
  EXPECT_FALSE(cluster.status().finished());
  EXPECT_EQ(cluster.State(ConditionType::kSpecIgnored), "True/InvalidSpec");
  EXPECT_THAT(cluster.Condition(ConditionType::kSpecIgnored).message,
              HasSubstr("spec.roles[1].template.spec.restartPolicy: "));

  cluster.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = false; });
  cluster.Settle();
  EXPECT_TRUE(cluster.status().Is(ConditionType::kSuspended));
  EXPECT_TRUE(cluster.pods.empty());

  cluster.ChangeSpec([](api::Spec& spec) { spec.roles[1].pod_template.clear(); });
  cluster.Settle();
  EXPECT_EQ(cluster.status().attempt, 2);
  EXPECT_EQ(cluster.pods.size(), 4u);
  EXPECT_EQ(cluster.State(ConditionType::kSpecIgnored), "False/Followed");
}

TEST(SuspendedSpec, AJobThatIsSuspendedFromTheStartIsNotFailedEither) {
  ModelCluster cluster{Job().Suspend()};
  cluster.Change([](ObservedJob& job) { job.job.spec.roles[1].pod_template = kBadTemplate; });
  cluster.Settle();
  EXPECT_FALSE(cluster.status().finished());
  EXPECT_TRUE(cluster.status().Is(ConditionType::kSuspended));
}

TEST(Refused, AQueueIsRefusedByNameWhereTheOperatorIsNotSetUpForIt) {
  ModelCluster cluster{Job()};
  cluster.Change([](ObservedJob& job) { job.job.metadata.labels[api::kQueueLabel] = "team"; });
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/InvalidSpec");
  EXPECT_THAT(cluster.Condition(ConditionType::kFailed).message,
              HasSubstr("metadata.labels[kueue.x-k8s.io/queue-name]: this operator is not set up "
                        "for queues; have its administrator set kueue.enabled"));
  EXPECT_THAT(cluster.events, Contains("InvalidSpec"));
  EXPECT_TRUE(cluster.pods.empty());
}

TEST(Refused, GpusOfATrainerImageWithoutCudaAreRefusedBeforeAnyPodFails) {
  ModelCluster cluster{Job()};
  cluster.settings.trainer_has_cuda = false;
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/InvalidSpec");
  EXPECT_THAT(
      cluster.Condition(ConditionType::kFailed).message,
      AllOf(HasSubstr("spec.roles[2].gpusPerReplica: 1 asks for GPUs, and the trainer image " +
                      cluster.settings.trainer_image + " has no CUDA"),
            HasSubstr("jobs.trainerImage")));
  EXPECT_TRUE(cluster.pods.empty());

  ModelCluster on_cpu{Job()};
  on_cpu.settings.trainer_has_cuda = false;
  on_cpu.Change([](ObservedJob& job) { job.job.spec.roles[2].gpus_per_replica = 0; });
  on_cpu.Settle();
  EXPECT_EQ(on_cpu.pods.size(), 4u);

  ModelCluster own_image{Job()};
  own_image.settings.trainer_has_cuda = false;
  own_image.Change([](ObservedJob& job) {
    job.job.spec.roles[2].pod_template =
        R"({"spec": {"containers": [{"name": "runtime", "image": "trainer:cuda"}]}})";
  });
  own_image.Settle();
  EXPECT_EQ(own_image.pods.size(), 4u);
}

TEST(Refused, AJobWithMorePodsThanTheOperatorMakesForOne) {
  ModelCluster cluster{Job().Cpus(7)};
  cluster.settings.max_pods = 9;
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/InvalidSpec");
  EXPECT_THAT(
      cluster.Condition(ConditionType::kFailed).message,
      HasSubstr("spec.roles: the job has up to 10 pods, and this operator makes at most 9"));
  ModelCluster scaled{Job().Cpus(1).Autoscale(1, 7)};
  scaled.settings.max_pods = 9;
  scaled.Settle();
  EXPECT_EQ(scaled.State(ConditionType::kFailed), "True/InvalidSpec");
}

TEST(Refused, ARunningJobScaledAboveTheLimitKeepsWhatItHasAndSaysSo) {
  ModelCluster cluster{Job().Cpus(3)};
  cluster.settings.max_pods = 8;
  cluster.RunJob();
  cluster.ChangeSpec([](api::Spec& spec) { spec.roles[1].replicas = 20; });
  cluster.Settle();
  EXPECT_EQ(cluster.pods.size(), 8u);
  EXPECT_FALSE(cluster.status().finished());
  EXPECT_EQ(cluster.State(ConditionType::kPodsCreated), "False/TooManyPods");
  // The limit itself is lowered: nobody is sent away, and CPU workers are not made anew.
  cluster.settings.max_pods = 4;
  cluster.Exit("vit-cpu-4", 137, "Evicted");
  cluster.Settle();
  EXPECT_EQ(cluster.pods.size(), 7u);
  EXPECT_FALSE(cluster.Has("vit-cpu-4"));
}

// Without its head it was nothing, and waited for it until its deadline.
TEST(Refused, ARunningJobAboveTheLimitGetsItsHeadAndTrainersBack) {
  ModelCluster cluster{Job().Cpus(5)};
  cluster.RunJob();
  cluster.settings.max_pods = 4;
  for (const char* pod : {"vit-head-0", "vit-cpu-1", "vit-gpu-1"}) {
    cluster.Exit(pod, 137, "Evicted");
    cluster.Settle();
  }
  EXPECT_TRUE(cluster.Has("vit-head-0"));
  EXPECT_TRUE(cluster.Has("vit-gpu-1"));
  EXPECT_FALSE(cluster.Has("vit-cpu-1"));
  // Those that are to come have their places, too.
  ModelCluster begun{Job().Cpus(5)};
  begun.RunJob();
  begun.settings.max_pods = 7;
  for (const auto& pod : std::map(begun.pods)) begun.Vanish(pod.first);
  begun.Settle();
  EXPECT_EQ(begun.pods.size(), 7u);
  EXPECT_TRUE(begun.Has("vit-cpu-3"));
  EXPECT_FALSE(begun.Has("vit-cpu-4"));
  EXPECT_TRUE(begun.Has("vit-gpu-1"));
}

}  // namespace
}  // namespace hetero::plan
