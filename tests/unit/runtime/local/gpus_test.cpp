#include "runtime/local/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hetero::local {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(UsableGpus, AreTheDriversUnlessTheVariableNamesSome) {
  EXPECT_THAT(UsableGpus(nullptr, 0), IsEmpty());
  EXPECT_THAT(UsableGpus(nullptr, 2), ElementsAre("0", "1"));
  EXPECT_THAT(UsableGpus("", 2), IsEmpty());
  EXPECT_THAT(UsableGpus("1", 2), ElementsAre("1"));
  EXPECT_THAT(UsableGpus("1,0", 2), ElementsAre("1", "0"));
  EXPECT_THAT(UsableGpus("GPU-8932f937,1", 2), ElementsAre("GPU-8932f937", "1"));
  EXPECT_THAT(UsableGpus("1,2,0", 2), ElementsAre("1"));  // as CUDA reads it
  EXPECT_THAT(UsableGpus("-1", 2), IsEmpty());
  EXPECT_THAT(UsableGpus("NoDevFiles", 2), IsEmpty());
  EXPECT_THAT(UsableGpus("MIG-1a,MIG-2b", 1), ElementsAre("MIG-1a", "MIG-2b"));
  EXPECT_THAT(UsableGpus("0,1,0", 2), IsEmpty());
  EXPECT_THAT(UsableGpus("0", 0), IsEmpty());
}

api::HeteroTrainingJob JobWithGpus(std::optional<int32_t> gpus) {
  api::HeteroTrainingJob job;
  job.spec.roles = {{.name = "head", .type = api::RoleType::kHead},
                    {.name = "trainer",
                     .type = api::RoleType::kGpuWorker,
                     .replicas = 2,
                     .gpus_per_replica = gpus}};
  return job;
}

TEST(CheckGpus, AGpuForEachRank) {
  EXPECT_THAT(CheckGpus(JobWithGpus(0), {}), IsEmpty());
  EXPECT_THAT(CheckGpus(JobWithGpus(1), {"0", "1"}), IsEmpty());
  for (const std::optional<int32_t> one : {std::optional<int32_t>(), std::optional<int32_t>(1)}) {
    const std::vector<api::FieldError> none = CheckGpus(JobWithGpus(one), {});
    ASSERT_EQ(none.size(), 1u);
    EXPECT_EQ(none[0].path, "spec.roles[1].gpusPerReplica");
    EXPECT_THAT(none[0].reason, HasSubstr("the ranks take 2 GPUs, and this machine has none"));
    EXPECT_THAT(none[0].reason, HasSubstr("--set roles.trainer.gpusPerReplica=0"));
  }
  ASSERT_EQ(CheckGpus(JobWithGpus(4), {"0", "1", "2"}).size(), 1u);
  EXPECT_THAT(CheckGpus(JobWithGpus(4), {"0", "1", "2"})[0].reason,
              HasSubstr("the ranks take 8 GPUs, and this machine has only 3"));
  api::HeteroTrainingJob script = JobWithGpus(4);
  script.spec.training.script = api::Script{.command = {"python3", "train.py"}};
  EXPECT_THAT(CheckGpus(script, {}), IsEmpty());
}

TEST(TrainsOnGpus, AModelWithGpus) {
  EXPECT_FALSE(TrainsOnGpus(JobWithGpus(0)));
  EXPECT_TRUE(TrainsOnGpus(JobWithGpus(std::nullopt)));
  api::HeteroTrainingJob script = JobWithGpus(4);
  script.spec.training.script = api::Script{.command = {"python3", "train.py"}};
  EXPECT_FALSE(TrainsOnGpus(script));
}

}  // namespace
}  // namespace hetero::local
