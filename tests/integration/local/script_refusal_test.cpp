// What is wrong with a job of the user's own script is said before any process starts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/integration/support/jobs.h"
#include "tests/integration/support/program_run.h"
#include "tests/support/paths.h"

namespace hetero {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramResult;
using testing::RunProgram;
using testing::TemporaryFolder;
using testing::WriteFile;

constexpr char kJob[] = R"(apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {name: scripted}
spec:
  dataset: {uri: "synthetic://", samples: 64, classes: 10, image: {height: 8, width: 8, channels: 3}}
  pipeline: [{op: Normalize}]
  training:
    script: {command: [sh, train.sh]}
    batchSizePerWorker: 4
    epochs: 1
  roles:
  - {name: head, type: Head}
  - {name: cpu, type: CPUWorker}
  - {name: gpu, type: GPUWorker, replicas: 2, gpusPerReplica: 0}
)";

class ScriptRefusal : public ::testing::Test {
 protected:
  ScriptRefusal() { WriteFile(folder_ / "jobs/job.yaml", kJob); }
  // `command` of hetero-runtime with the job and these changes.
  ProgramResult Run(const std::string& command, const std::vector<std::string>& sets,
                    std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {command, folder_ / "jobs/job.yaml"});
    if (command == "local") arguments.insert(arguments.end(), {"--output", folder_ / "out"});
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    return RunProgram("hetero-runtime", arguments);
  }
  TemporaryFolder folder_;
};

TEST_F(ScriptRefusal, ByValidateNamesWhatTheScriptDecides) {
  EXPECT_EQ(Run("validate", {}).exit_code, 0);
  const ProgramResult refused =
      Run("validate", {"training.model.name=mlp", "training.optimizer.name=Adam",
                       "training.gradientClipNorm=1", "training.script.command=[]"});
  EXPECT_EQ(refused.exit_code, 2);
  for (const char* error : {"spec.training.model: is not taken beside script",
                            "spec.training.optimizer: is not taken beside script",
                            "spec.training.gradientClipNorm: is not taken beside script",
                            "spec.training.script.command: has 0 entries"}) {
    EXPECT_THAT(refused.output, HasSubstr(error));
  }
}

TEST_F(ScriptRefusal, NamesAProgramOrFolderThatIsNotThere) {
  std::filesystem::create_directories(folder_ / "jobs/app");
  WriteFile(folder_ / "jobs/app/train.py", "print('no program yet')\n");
  const std::string jobs = folder_ / "jobs";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"training.script.command=[no-such-python, train.py]"},
       "spec.training.script.command[0]: there is no program 'no-such-python' in PATH"},
      {{"training.script.command=[./train.py]"},
       "spec.training.script.command[0]: " + jobs + "/train.py does not exist"},
      {{"training.script.command=[./train.py]", "training.script.workingDirectory=app"},
       jobs + "/app/train.py is no program that may be run; for a script write [python3, FILE]"},
      {{"training.script.workingDirectory=src"},
       "spec.training.script.workingDirectory: " + jobs + "/src is "},
      {{"training.script.workingDirectory=app/train.py"}, jobs + "/app/train.py is no folder"}};
  for (const auto& [sets, error] : cases) {
    const ProgramResult refused = Run("local", sets);
    EXPECT_EQ(refused.exit_code, 2) << refused.output;
    EXPECT_THAT(refused.output, HasSubstr(error));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out")) << "something was begun";
  }
}

TEST_F(ScriptRefusal, NamesWhatAScriptCannotDoOrAModelCannot) {
  EXPECT_THAT(Run("local", {}, {"--ceiling-probe"}).output, HasSubstr("--ceiling-probe measures"));
  const ProgramResult model =
      Run("local", {"training.script=", "training.model.name=mlp"}, {"--attach"});
  EXPECT_EQ(model.exit_code, 2);
  EXPECT_THAT(model.output, HasSubstr("--attach gives the batches to a script"));
  for (const char* other : {"--input-only", "--ceiling-probe"}) {
    EXPECT_EQ(Run("local", {}, {"--attach", other}).exit_code, 2) << other;
  }
}

// Without anything installed, and behind what its user has named.
TEST_F(ScriptRefusal, IsNoneWhereThePackageIsNotInstalled) {
  WriteFile(folder_ / "jobs/train.sh", "echo \"python=$PYTHONPATH in $(pwd)\"\nexit 3\n");
  const std::string sources = testing::SourceDir() + "/python";
  for (const auto& [own, path] :
       {std::pair<std::string, std::string>("", sources),
        std::pair<std::string, std::string>("/mine", "/mine:" + sources)}) {
    testing::ProgramRun run("hetero-runtime",
                            {"local", folder_ / "jobs/job.yaml", "--output", folder_ / "out",
                             "--set", "runPolicy.maxRestarts=0"},
                            {"PYTHONPATH=" + own});
    const ProgramResult result = run.Wait(std::chrono::seconds(60));
    EXPECT_EQ(result.exit_code, 1) << result.output;
    EXPECT_THAT(result.output, HasSubstr("python=" + path + " in " + (folder_ / "jobs") + "\n"));
  }
}

// What is measured is the way to the script, which needs neither it nor a trainer.
TEST_F(ScriptRefusal, IsNoneForTheInputAlone) {
  const ProgramResult result =
      Run("local", {"training.script.command=[no-such-python]"}, {"--input-only"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, Not(HasSubstr("no-such-python")));
}

}  // namespace
}  // namespace hetero
