// What a job leaves for the next one, and for TensorBoard.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "runtime/feed/safetensors.h"
#include "tests/integration/support/jobs.h"
#include "tests/integration/support/program_run.h"

namespace hetero {
namespace {

using testing::LocalRun;
using testing::ProgramResult;
using testing::SmallJobYaml;

constexpr std::chrono::seconds kDeadline(300);

double FirstLoss(const LocalRun& run) {
  return run.report()["lossCurve"].at(0)["loss"].get<double>();
}
double LastLoss(const LocalRun& run) {
  return run.report()["lossCurve"].back()["loss"].get<double>();
}

TEST(LocalWeights, TheNextJobGoesOnFromThem) {
  LocalRun first(SmallJobYaml(),
                 {"--set", "training.epochs=8", "--set", "training.gradientAccumulationSteps=2"});
  ASSERT_EQ(first.Wait(kDeadline).exit_code, 0);
  const std::string weights = first.output() + "/model.safetensors";
  ASSERT_TRUE(std::filesystem::exists(weights));
  ASSERT_TRUE(std::filesystem::exists(first.output() + "/tensorboard"));
  EXPECT_FALSE(std::filesystem::is_empty(first.output() + "/tensorboard"));
  EXPECT_EQ(first.report()["skippedSteps"], 0);

  LocalRun second(SmallJobYaml(), {"--set", "training.model.weights=file://" + weights});
  ASSERT_EQ(second.Wait(kDeadline).exit_code, 0);
  EXPECT_LT(LastLoss(first), 0.8 * FirstLoss(first));
  EXPECT_LT(FirstLoss(second), 0.8 * FirstLoss(first));
}

// A job begins by removing what one before it has left in its output folder.
TEST(LocalWeights, ThoseInTheOutputFolderItselfAreNotRemoved) {
  LocalRun first(SmallJobYaml(), {"--set", "training.maxSteps=1"});
  ASSERT_EQ(first.Wait(kDeadline).exit_code, 0);
  const std::string weights = first.output() + "/model.safetensors";
  testing::TemporaryFolder folder;
  folder.Write("job.yaml", SmallJobYaml());
  const auto again = [&](const std::string& setting) {
    testing::ProgramRun run("hetero-runtime", {"local", folder / "job.yaml", "--output",
                                               first.output(), "--set", setting});
    return run.Wait(kDeadline);
  };
  const ProgramResult refused = again("training.model.weights=file://" + weights);
  EXPECT_EQ(refused.exit_code, 1) << refused.output;
  EXPECT_NE(refused.output.find("spec.training.model.weights: " + weights), std::string::npos)
      << refused.output;
  EXPECT_TRUE(std::filesystem::exists(weights));
  EXPECT_EQ(again("training.maxSteps=1").exit_code, 0) << "its own results it may replace";
}

// A manifest in JSON would be written over.
TEST(LocalWeights, AManifestIsNotWrittenOver) {
  testing::TemporaryFolder folder;
  const std::string manifest = SmallJobYaml();
  folder.Write("job.json", manifest);
  testing::ProgramRun run("hetero-runtime",
                          {"local", folder / "job.json", "--output", folder.path()});
  const ProgramResult refused = run.Wait(kDeadline);
  EXPECT_EQ(refused.exit_code, 1) << refused.output;
  EXPECT_NE(refused.output.find("write over its own manifest"), std::string::npos)
      << refused.output;
  EXPECT_EQ(testing::ReadFileOrDie(folder / "job.json"), manifest);
}

// "--output .", say.
TEST(LocalWeights, FilesOfOthersAreNotRemoved) {
  testing::TemporaryFolder folder;
  folder.Write("job.yaml", SmallJobYaml());
  std::filesystem::create_directory(folder / "logs");
  folder.Write("logs/mine.txt", "of another program");
  const auto run = [&] {
    testing::ProgramRun program("hetero-runtime", {"local", folder / "job.yaml", "--output",
                                                   folder.path(), "--set", "training.maxSteps=1"});
    return program.Wait(kDeadline);
  };
  const ProgramResult refused = run();
  EXPECT_EQ(refused.exit_code, 1) << refused.output;
  EXPECT_NE(refused.output.find("has a 'logs' that is no job's"), std::string::npos)
      << refused.output;
  EXPECT_TRUE(std::filesystem::exists(folder / "logs/mine.txt"));
  folder.Write("job.json", "{\"of\": \"another program\"}");
  EXPECT_EQ(run().exit_code, 1) << "a name is no proof that a job made it";
  std::filesystem::remove(folder / "job.json");
  std::filesystem::remove_all(folder / "logs");
  EXPECT_EQ(run().exit_code, 0) << "other files are in nobody's way";
}

TEST(LocalWeights, AnotherModelsWeightsEndTheJobWithTheDifference) {
  LocalRun first(SmallJobYaml(), {"--set", "training.maxSteps=1"});
  ASSERT_EQ(first.Wait(kDeadline).exit_code, 0);
  LocalRun second(SmallJobYaml(), {"--set", "training.model={name: resnet18, weights: 'file://" +
                                                first.output() + "/model.safetensors'}"});
  const ProgramResult result = second.Wait(kDeadline);
  EXPECT_EQ(result.exit_code, 1) << result.output;
  const std::string message = second.report()["message"];
  EXPECT_NE(message.find("\"conv1.weight\" [64, 3, 7, 7] is missing in the file"),
            std::string::npos)
      << message;
}

// Begun from a model for four classes, with an evaluation after each step, which must not wake
// batch norm of what is frozen.
TEST(LocalWeights, FrozenLayersStayAsTheyWereAndTheLastOneIsAnother) {
  LocalRun first(SmallJobYaml(),
                 {"--set", "training.model.name=resnet18", "--set", "training.maxSteps=1"});
  ASSERT_EQ(first.Wait(kDeadline).exit_code, 0);
  LocalRun second(
      SmallJobYaml(),
      {"--set", "dataset.classes=6", "--set",
       "dataset.validation={uri: 'synthetic://', samples: 32, classes: 6, image: {height: 16, "
       "width: 16, "
       "channels: 3}}",
       "--set", "training.maxSteps=3", "--set", "training.evaluation.everySteps=1", "--set",
       "training.model={name: resnet18, exclude: [fc], freeze: [conv1, bn1, 'layer1.*'], weights: "
       "'file://" +
           first.output() + "/model.safetensors'}"});
  const ProgramResult result = second.Wait(kDeadline);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const auto before = feed::ReadSafetensors(first.output() + "/model.safetensors");
  const auto after = feed::ReadSafetensors(second.output() + "/model.safetensors");
  ASSERT_TRUE(before.ok() && after.ok()) << before.status() << after.status();
  int kept = 0;
  for (const auto& [name, tensor] : after->tensors) {
    const bool frozen =
        name.starts_with("conv1.") || name.starts_with("bn1.") || name.starts_with("layer1.");
    EXPECT_EQ(tensor.data == before->tensors.at(name).data, frozen) << name;
    kept += frozen;
  }
  EXPECT_EQ(kept, 30);  // five convolutions, five batch norms of five tensors each
  EXPECT_EQ(after->tensors.at("fc.weight").shape, (std::vector<int64_t>{6, 512}));
}

}  // namespace
}  // namespace hetero
