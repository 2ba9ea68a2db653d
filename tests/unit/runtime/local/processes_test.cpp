#include "runtime/local/processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hetero::local {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::Pair;

api::HeteroTrainingJob Job() {
  api::HeteroTrainingJob job;
  job.metadata.name = "demo";
  job.spec.roles = {
      {.name = "gpu", .type = api::RoleType::kGpuWorker, .replicas = 2, .gpus_per_replica = 0},
      {.name = "cpu", .type = api::RoleType::kCpuWorker, .replicas = 1},
      {.name = "head", .type = api::RoleType::kHead}};
  return job;
}

ProcessPlanOptions Options() {
  return {.runtime_program = "/bin/hetero-runtime",
          .trainer_program = "/bin/hetero-trainer",
          .socket_folder = "/tmp/s",
          .job_file = "/out/job.json",
          .output_folder = "/out",
          .cores = 4};
}

TEST(PlanProcesses, StartsHeadThenCpuWorkersThenTrainers) {
  std::vector<std::string> names;
  for (const ProcessPlan& plan : PlanProcesses(Job(), Options())) names.push_back(plan.name);
  EXPECT_THAT(names, ElementsAre("head", "cpu-0", "gpu-0", "gpu-1"));
}

TEST(PlanProcesses, SharesTheCoresAmongTheRanks) {
  const ProcessPlan trainer = PlanProcesses(Job(), Options())[2];
  EXPECT_THAT(trainer.command, ElementsAre("/bin/hetero-trainer", "--threads", "2", "--output",
                                           "/out", "--local-share", "LastResort"));
  EXPECT_THAT(trainer.environment, Contains(Pair("HETERO_ROLE", "gpu")));
  EXPECT_THAT(trainer.environment, Contains(Pair("HETERO_ROLE_TYPE", "GPUWorker")));
  EXPECT_THAT(trainer.environment, Contains(Pair("HETERO_HEAD_ADDRESS", "unix:/tmp/s/head.sock")));
}

TEST(PlanProcesses, InputOnlyNeedsNoTrainer) {
  ProcessPlanOptions options = Options();
  options.input_only = true;
  options.dump_stream_folder = "/dump";
  const std::vector<ProcessPlan> plans = PlanProcesses(Job(), options);
  EXPECT_THAT(plans[2].command,
              ElementsAre("/bin/hetero-runtime", "consumer", "--dump-stream", "/dump"));
  EXPECT_THAT(plans[0].command, Contains("--input-only"));
  EXPECT_THAT(plans[1].command, Not(Contains("--input-only")));
}

}  // namespace
}  // namespace hetero::local
