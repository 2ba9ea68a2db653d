// With which images the pods of an attempt are made when the operator's have changed meanwhile.
#include "operator/plan/attempt_images.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using api::AttemptImages;
using std::chrono::seconds;

const AttemptImages kOld{.runtime = "runtime:old", .trainer = "trainer:old"};
const AttemptImages kNew{.runtime = "runtime:new", .trainer = "trainer:new"};

void Use(ModelCluster& cluster, const AttemptImages& images) {
  cluster.settings.runtime_image = images.runtime;
  cluster.settings.trainer_image = images.trainer;
}

// A job that an operator with the old images began; then comes one with the new.
ModelCluster Upgraded(const Job& job = Job()) {
  ModelCluster cluster{job};
  Use(cluster, kOld);
  cluster.RunJob();
  Use(cluster, kNew);
  cluster.head.reset();
  return cluster;
}

// The one before kept no images.
ModelCluster UpgradedFromFirstReleases(const Job& job = Job()) {
  ModelCluster cluster = Upgraded(job);
  cluster.Change([](ObservedJob& object) { object.status.images.reset(); });
  return cluster;
}

void Lose(ModelCluster& cluster, const std::string& pod) {
  cluster.Delete(pod);
  cluster.Vanish(pod);
}

// The head of the attempt refused the new programs until the budget of restarts was spent.
TEST(AttemptImagesTest, APodThatIsReplacedAfterAnUpgradeHasTheImageOfItsAttempt) {
  ModelCluster cluster = Upgraded();
  EXPECT_EQ(cluster.status().images, kOld);
  Lose(cluster, "vit-gpu-1");
  Lose(cluster, "vit-cpu-0");
  cluster.Settle();
  EXPECT_EQ(cluster.Pod("vit-gpu-1").image, "trainer:old");
  EXPECT_EQ(cluster.Pod("vit-cpu-0").image, "runtime:old");
  EXPECT_EQ(cluster.status().images, kOld);
}

TEST(AttemptImagesTest, ANewAttemptHasTheImagesOfNow) {
  ModelCluster cluster = Upgraded(Job().Scope(2, api::RestartScope::kGang));
  cluster.Exit("vit-gpu-1", 1);
  cluster.Settle();
  cluster.VanishTerminating();
  cluster.Settle();
  ASSERT_EQ(cluster.status().attempt, 2);
  EXPECT_EQ(cluster.status().images, kNew);
  EXPECT_EQ(cluster.Pod("vit-gpu-0").image, "trainer:new");
  EXPECT_EQ(cluster.Pod("vit-head-0").image, "runtime:new");
}

TEST(AttemptImagesTest, SoHasAJobThatIsResumed) {
  ModelCluster cluster = Upgraded();
  cluster.HeadSays(HeadReport::State::kRunning);
  cluster.Suspend();
  cluster.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = false; });
  cluster.Settle();
  EXPECT_EQ(cluster.status().images, kNew);
  EXPECT_EQ(cluster.Pod("vit-gpu-0").image, "trainer:new");
}

TEST(AttemptImagesTest, WhereNoneAreKeptTheAttemptsPodsTellThem) {
  ModelCluster cluster = UpgradedFromFirstReleases();
  Lose(cluster, "vit-head-0");
  Lose(cluster, "vit-gpu-1");
  cluster.Settle();
  EXPECT_EQ(cluster.status().images, kOld);
  EXPECT_EQ(cluster.Pod("vit-head-0").image, "runtime:old") << "as its CPU worker has";
  EXPECT_EQ(cluster.Pod("vit-gpu-1").image, "trainer:old");
  // Kept from then on, whoever else goes.
  for (const char* pod : {"vit-cpu-0", "vit-head-0"}) Lose(cluster, pod);
  Use(cluster, {.runtime = "runtime:newer", .trainer = "trainer:newer"});
  cluster.Settle();
  EXPECT_EQ(cluster.Pod("vit-cpu-0").image, "runtime:old");
  EXPECT_EQ(cluster.status().attempt, 1);
}

TEST(AttemptImagesTest, APodThatHasFailedTellsThemToo) {
  ModelCluster cluster = UpgradedFromFirstReleases(Job().Gpus(1));
  cluster.Exit("vit-head-0", 137, "Evicted");
  Lose(cluster, "vit-cpu-0");
  cluster.Settle();
  EXPECT_EQ(cluster.Pod("vit-head-0").image, "runtime:old");
}

TEST(AttemptImagesTest, AnImageOfATemplateTellsNothingOfTheOthers) {
  Job job;
  job.role(1).pod_template =
      R"({"spec": {"containers": [{"name": "runtime", "image": "mine:1"}]}})";
  ModelCluster cluster = UpgradedFromFirstReleases(job);
  cluster.Change("vit-cpu-0", [](ObservedPod& pod) { pod.image = "mine:1"; });
  cluster.Settle();
  EXPECT_EQ(cluster.status().images, kOld);
  Lose(cluster, "vit-head-0");
  cluster.Change([](ObservedJob& object) { object.status.images.reset(); });
  cluster.Settle();
  EXPECT_EQ(cluster.Pod("vit-head-0").image, "runtime:new") << "no pod tells";
}

}  // namespace
}  // namespace hetero::plan
