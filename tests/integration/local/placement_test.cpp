// Operators on the CPU workers or on the trainer, with real processes: the stream is the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/integration/support/jobs.h"
#include "tests/integration/support/program_run.h"

namespace hetero {
namespace {

using ::testing::HasSubstr;
using testing::LocalRun;
using testing::ProgramResult;
using testing::RunProgram;
using testing::SmallJobYaml;
using testing::TemporaryFolder;

const std::vector<std::string>& Entries() {
  static const std::vector<std::string> entries = {
      "op: RandomResizedCrop, size: {height: 12, width: 12}, scale: {min: 0.5, max: 1.0}",
      "op: HorizontalFlip",
      "op: GaussianBlur, kernelSize: 3, sigma: {min: 0.1, max: 1.0}, repeat: 2"};
  return entries;
}

// The first `on_workers` entries are fixed to the CPU workers, the others to the trainer.
std::string Pipeline(size_t on_workers) {
  std::string pipeline = "pipeline=[";
  for (size_t i = 0; i < Entries().size(); ++i) {
    pipeline +=
        "{" + Entries()[i] + ", placement: " + (i < on_workers ? "CPUWorker" : "Trainer") + "}, ";
  }
  return pipeline + "{op: Normalize}]";
}

nlohmann::json Report(LocalRun& run) {
  const ProgramResult result = run.Wait(std::chrono::seconds(120));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  return run.report();
}

TEST(Placement, EveryCutYieldsTheSameStreamAndTheSameModel) {
  LocalRun automatic(SmallJobYaml(),
                     {"--set", "pipeline=[{" + Entries()[0] + "}, {" + Entries()[1] + "}, {" +
                                   Entries()[2] + "}, {op: Normalize}]"});
  const nlohmann::json want = Report(automatic);
  ASSERT_EQ(want["placement"].size(), 4u);
  EXPECT_EQ(want["placement"][0]["where"], "CPUWorker");
  EXPECT_EQ(want["placement"][3]["where"], "Trainer");
  for (size_t on_workers = 0; on_workers <= Entries().size(); ++on_workers) {
    SCOPED_TRACE(on_workers);
    LocalRun run(SmallJobYaml(), {"--set", Pipeline(on_workers)});
    const nlohmann::json report = Report(run);
    EXPECT_EQ(report["streamDigest"], want["streamDigest"]);
    EXPECT_EQ(report["samplesConsumed"], want["samplesConsumed"]);
    EXPECT_EQ(report["loss"], want["loss"]);
    ASSERT_EQ(report["placement"].size(), 4u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(report["placement"][i]["where"], i < on_workers ? "CPUWorker" : "Trainer");
      EXPECT_EQ(report["placement"][i]["reason"], "the manifest says so");
    }
    // What travelled is what the workers were left with: 16 x 16 pictures before the crop.
    const int64_t bytes = on_workers == 0 ? 16 * 16 * 3 : 12 * 12 * 3;
    int64_t samples = 0;  // of all workers: one that is late in so small a job may get none
    for (const nlohmann::json& worker : report["workers"]) {
      if (worker["role"] != "cpu") continue;
      samples += worker["samples"].get<int64_t>();
      EXPECT_EQ(worker["bytes"].get<int64_t>(), worker["samples"].get<int64_t>() * bytes);
    }
    EXPECT_GT(samples, 0);
  }
}

TEST(Placement, AKilledWorkerChangesNothingWhereTheTrainerFinishesBatches) {
  LocalRun plain(SmallJobYaml(), {"--input-only", "--set", "training.epochs=40"});
  const nlohmann::json want = Report(plain);
  LocalRun run(
      SmallJobYaml(),
      {"--input-only", "--set", "training.epochs=40", "--set",
       "pipeline=[{" + Entries()[0] +
           "}, {op: HorizontalFlip, placement: Trainer}, "
           "{op: GaussianBlur, kernelSize: 3, sigma: {min: 0.1, max: 1.0}}, {op: Normalize}]"});
  const pid_t worker = run.PidOf("cpu-0");
  ASSERT_TRUE(run.WaitForLog("gpu-0", "CPU worker up"));
  kill(worker, SIGKILL);
  EXPECT_EQ(Report(run)["streamDigest"], want["streamDigest"]);
}

TEST(Placement, WhatCannotBePlacedIsRefusedByItsField) {
  TemporaryFolder folder;
  const ProgramResult made =
      RunProgram("hetero-runtime", {"make-dataset", "--classes", "2", "--samples", "64", "--size",
                                    "24", "--seed", "3", folder / "data"});
  ASSERT_EQ(made.exit_code, 0) << made.output;
  const std::string data = "dataset={uri: 'file://" + (folder / "data/train") + "'}";
  // Pictures that are stored as files vary in size until the crop.
  LocalRun early(SmallJobYaml(), {"--set", data, "--set", Pipeline(0)});
  const ProgramResult refused = early.Wait();
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.output, HasSubstr("spec.pipeline[0].placement"));
  EXPECT_THAT(refused.output, HasSubstr("cannot be Trainer"));
  LocalRun late(SmallJobYaml(), {"--set", data, "--set", Pipeline(1)});
  EXPECT_EQ(late.Wait().exit_code, 0);

  LocalRun backwards(SmallJobYaml(), {"--set",
                                      "pipeline=[{op: HorizontalFlip, placement: Trainer}, {op: "
                                      "HorizontalFlip, placement: CPUWorker}]"});
  EXPECT_EQ(backwards.Wait().exit_code, 2);
}

}  // namespace
}  // namespace hetero
