// The command line: help, validate, preview, make-dataset.
#include <gtest/gtest.h>

#include <filesystem>
#include <tuple>
#include <vector>

#include "tests/integration/support/jobs.h"
#include "tests/integration/support/program_run.h"
#include "tests/support/paths.h"

namespace hetero {
namespace {

using testing::ProgramResult;
using testing::RunProgram;
using testing::SmallJobYaml;
using testing::TemporaryFolder;
using testing::WriteFile;

TEST(Command, HelpIsEverywhere) {
  for (const char* command :
       {"local", "validate", "preview", "inspect", "pack", "make-dataset", "compare", "report",
        "head", "cpu-worker", "consumer", "agent", "install"}) {
    const ProgramResult result = RunProgram("hetero-runtime", {command, "--help"});
    EXPECT_EQ(result.exit_code, 0) << command;
    EXPECT_NE(result.output.find("Usage:"), std::string::npos) << result.output;
  }
  EXPECT_EQ(RunProgram("hetero-runtime", {"--help"}).exit_code, 0);
  const ProgramResult none = RunProgram("hetero-runtime", {});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(RunProgram("hetero-runtime", {"fly"}).exit_code, 2);
}

TEST(Command, ValidateListsEveryErrorWithItsField) {
  TemporaryFolder folder;
  const std::string job = folder / "job.yaml";
  WriteFile(job, SmallJobYaml());
  EXPECT_EQ(RunProgram("hetero-runtime", {"validate", job}).exit_code, 0);
  const ProgramResult bad = RunProgram(
      "hetero-runtime", {"validate", job, "--set", "training.batchSizePerWorker=0", "--set",
                         "roles.cpu.replicas=-1", "--set", "training.model.name=''"});
  EXPECT_EQ(bad.exit_code, 2);
  for (const char* path :
       {"spec.training.batchSizePerWorker", "spec.roles[1].replicas", "spec.training.model"}) {
    EXPECT_NE(bad.output.find(path), std::string::npos) << bad.output;
  }
}

// What no run would take is not valid, whichever program is asked.
TEST(Command, ValidateRefusesWhatThisVersionCannotDo) {
  TemporaryFolder folder;
  const std::string job = folder / "job.yaml";
  std::string text = SmallJobYaml();
  const size_t name = text.find("name: mlp");
  ASSERT_NE(name, std::string::npos);
  WriteFile(job, text.replace(name, std::string("name: mlp").size(), "name: resnet99"));
  for (const char* program : {"hetero-runtime", "kubectl-hetero"}) {
    const ProgramResult refused = RunProgram(program, {"validate", job});
    EXPECT_NE(refused.exit_code, 0) << program;
    EXPECT_NE(
        refused.output.find("spec.training.model.name: model \"resnet99\" is not supported yet"),
        std::string::npos)
        << refused.output;
  }
}

TEST(Command, ExamplesAreValid) {
  int found = 0;
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(testing::SourceDir() + "/examples")) {
    if (file.path().extension() != ".yaml") continue;
    // examples/clusters has other kinds, too, and the chart's values.
    const std::string text = testing::ReadFileOrDie(file.path());
    if (text.find("\nkind: HeteroTrainingJob\n") == std::string::npos) continue;
    ++found;
    const ProgramResult result = RunProgram("hetero-runtime", {"validate", file.path()});
    EXPECT_EQ(result.exit_code, 0) << file.path() << "\n" << result.output;
  }
  EXPECT_GE(found, 15);
}

TEST(Command, MakeDatasetRefusesAFullFolder) {
  TemporaryFolder folder;
  const std::vector<std::string> arguments = {"make-dataset",
                                              "--format",
                                              "IDX",
                                              "--classes",
                                              "3",
                                              "--samples",
                                              "30",
                                              "--validation-samples",
                                              "6",
                                              "--size",
                                              "28",
                                              folder / "data"};
  EXPECT_EQ(RunProgram("hetero-runtime", arguments).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "data/train-images-idx3-ubyte.gz"));
  const ProgramResult again = RunProgram("hetero-runtime", arguments);
  EXPECT_NE(again.exit_code, 0);
  EXPECT_NE(again.output.find("not empty"), std::string::npos) << again.output;
}

TEST(Command, InputOnlyOfTheReferencePipelineReportsItsCost) {
  testing::LocalRun run(testing::ReadFileOrDie(testing::SourceDir() + "/examples/vit-blur.yaml"),
                        {"--input-only", "--set", "training.maxSteps=2"});
  const ProgramResult result = run.Wait();
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const nlohmann::json report = run.report();
  EXPECT_EQ(report["samplesConsumed"], 128);
  EXPECT_GT(report["samplesPerSecond"].get<double>(), 0);
  for (const char* role : {"cpu", "gpu"}) {
    EXPECT_GT(report["cpuSecondsPerSample"].value(role, 0.0), 0) << report["cpuSecondsPerSample"];
  }
}

TEST(Command, PreviewWritesAContactSheet) {
  TemporaryFolder folder;
  WriteFile(folder / "job.yaml", SmallJobYaml());
  const std::string sheet = folder / "sheet.png";
  const ProgramResult result = RunProgram(
      "hetero-runtime", {"preview", folder / "job.yaml", "--samples", "9", "--output", sheet});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(testing::ReadFileOrDie(sheet).substr(1, 3), "PNG");
}

TEST(Command, PreviewNeedsNoValidationData) {
  TemporaryFolder folder;
  WriteFile(folder / "job.yaml", SmallJobYaml());
  const std::string sheet = folder / "sheet.png";
  const ProgramResult result = RunProgram(
      "hetero-runtime", {"preview", folder / "job.yaml", "--output", sheet, "--set",
                         "dataset.validation={uri: 'file:///nowhere', format: ImageFolder}"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(testing::ReadFileOrDie(sheet).substr(1, 3), "PNG");
}

// What tests/golden/make_datasets.py put into each format: twelve pictures of three classes.
TEST(Command, InspectSaysWhatADatasetHolds) {
  const std::string golden = testing::SourceDir() + "/tests/golden/datasets/";
  const std::vector<std::tuple<const char*, const char*, int>> cases = {
      {"image_folder", "ImageFolder", 0},
      {"web_dataset", "WebDataset", 3},
      {"tf_record", "TFRecord", 2},
      {"record_io", "RecordIO", 1},
      {"mds", "MDS", 3},
      {"mds_zstd", "MDS", 3},
      {"parquet", "Parquet", 2},
  };
  for (const auto& [name, format, shards] : cases) {
    std::vector<std::string> arguments = {"inspect", golden + name, "--json"};
    if (name == std::string("tf_record"))
      arguments.insert(arguments.end(), {"--label-offset", "-1"});
    const ProgramResult result = RunProgram("hetero-runtime", arguments);
    ASSERT_EQ(result.exit_code, 0) << result.output;
    const nlohmann::json found = nlohmann::json::parse(result.output);
    EXPECT_EQ(found["uri"], "file://" + golden + name);
    EXPECT_EQ(found["format"], format);
    EXPECT_EQ(found["shards"], shards) << name;
    EXPECT_EQ(found["samples"], 12) << name;
    EXPECT_EQ(found["classes"], 3) << name;
    EXPECT_EQ(found["lookedAt"], 12) << name;
    EXPECT_EQ(found["labels"], (nlohmann::json{{"0", 4}, {"1", 4}, {"2", 4}})) << name;
    EXPECT_EQ(found["encodings"], (nlohmann::json{{"JPEG", 3}, {"PNG", 9}})) << name;
    EXPECT_EQ(found["badSamples"], 0) << name;
  }
}

TEST(Command, WhatInspectSaysOfTheManifestIsOne) {
  TemporaryFolder folder;
  const ProgramResult result = RunProgram(
      "hetero-runtime", {"inspect", testing::SourceDir() + "/tests/golden/datasets/tf_record",
                         "--label-offset", "-1", "--label", "image/class/label"});
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const std::string heading = "In the manifest\n";
  const size_t at = result.output.find(heading);
  ASSERT_NE(at, std::string::npos) << result.output;
  std::string job = SmallJobYaml();
  const size_t dataset = job.find("  dataset:");
  const size_t pipeline = job.find("  pipeline:");
  ASSERT_LT(dataset, pipeline);
  WriteFile(folder / "job.yaml",
            job.replace(dataset, pipeline - dataset, result.output.substr(at + heading.size())));
  const ProgramResult valid = RunProgram("hetero-runtime", {"validate", folder / "job.yaml"});
  EXPECT_EQ(valid.exit_code, 0) << valid.output;
}

TEST(Command, InspectKnowsLabelsThatAreNoClasses) {
  TemporaryFolder folder;
  std::filesystem::copy(testing::SourceDir() + "/tests/golden/datasets/image_folder/cat",
                        folder / "data");
  std::string lines;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "data")) {
    lines += R"({"file_name": ")" + entry.path().filename().string() + R"(", "age": [1, 2.5]})";
    lines += "\n";
  }
  WriteFile(folder / "data/metadata.jsonl", lines);
  const auto inspect = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"inspect", folder / "data"});
    return RunProgram("hetero-runtime", options);
  };
  const ProgramResult none = inspect({"--label-type", "None"});
  EXPECT_EQ(none.exit_code, 0) << none.output;
  EXPECT_NE(none.output.find("    label:\n      type: None\n"), std::string::npos) << none.output;
  const ProgramResult numbers =
      inspect({"--label-type", "Float32", "--label-shape", "2", "--label-field", "age"});
  EXPECT_EQ(numbers.exit_code, 0) << numbers.output;
  EXPECT_NE(numbers.output.find("      type: Float32\n      shape: [2]\n      field: age\n"),
            std::string::npos)
      << numbers.output;
  for (const char* shape : {"-1", "0", "70000", "60000,60000,60000,60000"}) {
    const ProgramResult refused =
        inspect({"--label-type", "Float32", std::string("--label-shape=") + shape});
    EXPECT_EQ(refused.exit_code, 2) << refused.output;
    EXPECT_NE(refused.output.find("--label-shape"), std::string::npos) << refused.output;
  }
  EXPECT_EQ(inspect({"--label-shape", "2"}).exit_code, 2);
}

TEST(Command, InspectDrawsPicturesOfAFolderAndNamesTheBadOne) {
  TemporaryFolder folder;
  std::filesystem::copy(testing::SourceDir() + "/tests/golden/datasets/image_folder",
                        folder / "data", std::filesystem::copy_options::recursive);
  WriteFile(folder / "data/cat/9.jpg", "no picture");
  const ProgramResult result =
      RunProgram("hetero-runtime", {"inspect", folder / "data", "--sheet", folder / "sheet.png"});
  ASSERT_EQ(result.exit_code, 0) << result.output;
  for (const char* text :
       {"format   ImageFolder", "samples  13", "classes  3", "cat/9.jpg", "Of 13 samples",
        "1 of 13 samples is bad", "sheet.png", "format: ImageFolder"}) {
    EXPECT_NE(result.output.find(text), std::string::npos) << text << "\n" << result.output;
  }
  EXPECT_EQ(testing::ReadFileOrDie(folder / "sheet.png").substr(1, 3), "PNG");
  const ProgramResult missing = RunProgram("hetero-runtime", {"inspect", folder / "nowhere"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.output.find("nowhere"), std::string::npos) << missing.output;
}

}  // namespace
}  // namespace hetero
