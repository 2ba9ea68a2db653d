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

TEST(PlanProcesses, TheHeadAloneGetsTheSocketOfThePage) {
  ProcessPlanOptions options = Options();
  options.page_socket = 7;
  const std::vector<ProcessPlan> plans = PlanProcesses(Job(), options);
  EXPECT_THAT(plans[0].command, ::testing::IsSupersetOf({"--page-listen", "fd:7"}));
  EXPECT_THAT(plans[0].inherited, ElementsAre(7));
  for (size_t i = 1; i < plans.size(); ++i) EXPECT_TRUE(plans[i].inherited.empty());
  EXPECT_THAT(PlanProcesses(Job(), Options())[0].command, Not(Contains("--page-listen")));
}

TEST(PlanProcesses, SharesTheCoresAmongTheRanks) {
  const ProcessPlan trainer = PlanProcesses(Job(), Options())[2];
  EXPECT_THAT(trainer.command, ElementsAre("/bin/hetero-trainer", "--threads", "2", "--output",
                                           "/out", "--local-share", "LastResort"));
  EXPECT_THAT(trainer.environment, Contains(Pair("HETERO_ROLE", "gpu")));
  EXPECT_THAT(trainer.environment, Contains(Pair("HETERO_ROLE_TYPE", "GPUWorker")));
  EXPECT_THAT(trainer.environment, Contains(Pair("HETERO_HEAD_ADDRESS", "unix:/tmp/s/head.sock")));
}

api::HeteroTrainingJob ScriptJob() {
  api::HeteroTrainingJob job = Job();
  job.spec.training.script = api::Script{.command = {"python3", "train.py"}};
  return job;
}

TEST(PlanProcesses, AnAgentRunsTheScriptsOfEveryReplica) {
  ProcessPlanOptions options = Options();
  options.working_directory = "/job";
  api::HeteroTrainingJob job = ScriptJob();
  job.spec.roles[0].gpus_per_replica = 2;
  const std::vector<std::string> command = {
      "/bin/hetero-runtime", "agent",  "--output", "/out", "--working-directory", "/job",
      "--sockets",           "/tmp/s", "--ranks",  "2",    "--threads",           "1"};
  const std::vector<ProcessPlan> plans = PlanProcesses(job, options);
  ASSERT_EQ(plans.size(), 4u);
  for (const size_t replica : {2, 3}) {
    EXPECT_EQ(plans[replica].command, command);
    EXPECT_THAT(plans[replica].environment, Contains(Pair("HETERO_ROLE_TYPE", "GPUWorker")));
  }
  EXPECT_THAT(plans[2].environment, Not(Contains(Pair("PYTHONPATH", ::testing::_))));
  options.python_path = "/mine:/hetero";
  EXPECT_THAT(PlanProcesses(job, options)[2].environment,
              Contains(Pair("PYTHONPATH", "/mine:/hetero")));
  EXPECT_THAT(PlanProcesses(Job(), options)[2].environment,
              Not(Contains(Pair("PYTHONPATH", ::testing::_))));
  options.dump_stream_folder = "/dump";
  std::vector<std::string> dumping = command;
  dumping.insert(dumping.end(), {"--dump-stream", "/dump"});
  EXPECT_EQ(PlanProcesses(job, options)[2].command, dumping);
  options.input_only = true;
  EXPECT_THAT(PlanProcesses(job, options)[2].command,
              ElementsAre("/bin/hetero-runtime", "consumer", "--dump-stream", "/dump"));
}

TEST(PlanProcesses, AnAttachedAgentListensWhereTheLauncherSays) {
  ProcessPlanOptions options = Options();
  options.attach = true;
  EXPECT_EQ(AttachedSocket(options), "/tmp/s/stream.sock");
  EXPECT_THAT(PlanProcesses(ScriptJob(), options)[2].command,
              ElementsAre("/bin/hetero-runtime", "agent", "--output", "/out", "--attach",
                          "/tmp/s/stream.sock"));
}

TEST(PlanProcesses, ReplicasGetGpusOfTheirOwn) {
  ProcessPlanOptions options = Options();
  options.usable_gpus = {"0", "1", "2", "3"};
  api::HeteroTrainingJob job = Job();
  EXPECT_THAT(PlanProcesses(job, options)[2].environment,
              Not(Contains(Pair("CUDA_VISIBLE_DEVICES", ::testing::_))));
  job.spec.roles[0].gpus_per_replica = 2;
  const std::vector<ProcessPlan> plans = PlanProcesses(job, options);
  EXPECT_THAT(plans[2].command, ElementsAre("/bin/hetero-trainer", "--threads", "1", "--output",
                                            "/out", "--local-share", "LastResort", "--gpus", "2"));
  EXPECT_THAT(plans[2].environment, Contains(Pair("CUDA_VISIBLE_DEVICES", "0,1")));
  EXPECT_THAT(plans[3].environment, Contains(Pair("CUDA_VISIBLE_DEVICES", "2,3")));
  // A script may do with fewer: what each of them uses it decides.
  options.usable_gpus = {"0", "1", "2"};
  job.spec.training.script = api::Script{.command = {"python3", "train.py"}};
  EXPECT_THAT(PlanProcesses(job, options)[2].environment,
              Contains(Pair("CUDA_VISIBLE_DEVICES", "0,1")));
  EXPECT_THAT(PlanProcesses(job, options)[3].environment,
              Contains(Pair("CUDA_VISIBLE_DEVICES", "2")));
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
