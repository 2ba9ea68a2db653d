// `hetero-runtime compare` on runs of real jobs, its figures held against their reports as this
// test reads them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/integration/support/jobs.h"
#include "tests/integration/support/program_run.h"

namespace hetero {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::LocalRun;
using testing::ProgramResult;
using testing::ProgramRun;
using testing::ReadFileOrDie;
using testing::RunProgram;
using testing::SmallJobYaml;
using testing::TemporaryFolder;
using testing::WriteFile;

constexpr std::chrono::seconds kCompareDeadline(240);
const std::vector<std::string> kPrices = {"--set", "roles.head.pricePerHour='0'",
                                          "--set", "roles.cpu.pricePerHour='0.816'",
                                          "--set", "roles.gpu.pricePerHour='1.408'"};

std::vector<std::string> With(std::vector<std::string> arguments,
                              const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// Standard output, which comes last: the runs' own lines go to standard error.
json JsonOf(const ProgramResult& result) {
  const size_t begin = result.output.rfind("\n{\n");
  return json::parse(result.output.substr(begin == std::string::npos ? 0 : begin + 1), nullptr,
                     /*allow_exceptions=*/false);
}

json ReportIn(const std::string& folder) {
  return json::parse(ReadFileOrDie(folder + "/report.json"));
}

std::string PathOfDifference(const json& comparison, const std::string& path) {
  for (const json& difference : comparison["differences"]) {
    if (difference["path"] == path) return difference["values"].dump();
  }
  return "";
}

TEST(Compare, TwoRunsHaveTheFiguresOfTheirReports) {
  LocalRun first(SmallJobYaml(), kPrices);
  ASSERT_EQ(first.Wait(kCompareDeadline).exit_code, 0);
  LocalRun second(SmallJobYaml(), With(kPrices, {"--set", "roles.cpu.replicas=2", "--set",
                                                 "training.batchSizePerWorker=16"}));
  ASSERT_EQ(second.Wait(kCompareDeadline).exit_code, 0);
  TemporaryFolder folder;
  const std::string page = folder / "compare.html";
  const ProgramResult result = RunProgram(
      "hetero-runtime",
      {"compare", first.output(), second.output() + "/report.json", "-o", "json", "--html", page});
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const json comparison = JsonOf(result);
  ASSERT_TRUE(comparison.is_object()) << result.output;
  const std::vector<json> reports = {first.report(), second.report()};
  const std::vector<double> dollars_per_hour = {0.816 + 2 * 1.408, 2 * 0.816 + 2 * 1.408};
  for (size_t i = 0; i < reports.size(); ++i) {
    const json& run = comparison["runs"][i];
    for (const char* same :
         {"job", "state", "steps", "samplesConsumed", "samplesPerSecond", "dataWaitPercent",
          "startupSeconds", "trainSeconds", "wallSeconds", "loss", "phaseSeconds",
          "cpuSecondsPerSample", "costDollars", "costPerMillionSamples", "streamDigest"}) {
      ASSERT_TRUE(reports[i].contains(same)) << same;
      EXPECT_EQ(run.value(same, json()), reports[i][same]) << same;
    }
    EXPECT_NEAR(run["dollarsPerHour"].get<double>(), dollars_per_hour[i], 1e-9);
    EXPECT_NEAR(run["trainingDollarsPerMillionSamples"].get<double>(),
                dollars_per_hour[i] / 3600 / reports[i]["samplesPerSecond"].get<double>() * 1e6,
                1e-9);
    EXPECT_NEAR(
        run["samplesPerSecondRatio"].get<double>(),
        reports[i]["samplesPerSecond"].get<double>() / reports[0]["samplesPerSecond"].get<double>(),
        1e-9);
  }
  EXPECT_EQ(comparison["differences"].size(), 2u) << comparison["differences"];
  EXPECT_EQ(PathOfDifference(comparison, "roles[cpu].replicas"), "[1,2]");
  EXPECT_EQ(PathOfDifference(comparison, "training.batchSizePerWorker"), "[32,16]");
  EXPECT_EQ(comparison["equalInput"], reports[0]["streamDigest"] == reports[1]["streamDigest"]);
  EXPECT_EQ(comparison["equalInput"], false);
  EXPECT_THAT(ReadFileOrDie(page), HasSubstr("Comparison of 2 runs"));

  const ProgramResult text =
      RunProgram("hetero-runtime", {"compare", first.output(), second.output()});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.output, HasSubstr("roles[cpu].replicas"));
  EXPECT_THAT(text.output, HasSubstr("1 -> 2\n"));
  EXPECT_THAT(text.output, HasSubstr("\nverdict  "));
}

TEST(Compare, AJobWithoutItsCpuWorkersIsRunAndPriced) {
  TemporaryFolder folder;
  WriteFile(folder / "job.yaml", SmallJobYaml());
  const std::string out = folder / "out";
  const ProgramResult result =
      RunProgram("hetero-runtime",
                 With({"compare", "--baseline-without-cpu-workers", folder / "job.yaml", "--steps",
                       "6", "--pairs", "2", "--output", out, "-o", "json"},
                      kPrices),
                 kCompareDeadline);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const json comparison = JsonOf(result);
  ASSERT_TRUE(comparison.is_object()) << result.output;
  std::vector<std::vector<double>> rates(2);
  const std::vector<std::string> names = {"/alone-1", "/with-cpu-workers-1", "/alone-2",
                                          "/with-cpu-workers-2"};
  for (size_t i = 0; i < names.size(); ++i) {
    const json report = ReportIn(out + names[i]);
    EXPECT_EQ(report["state"], "Succeeded");
    EXPECT_EQ(report["steps"], 6);
    EXPECT_EQ(report["workers"].size(), i % 2 == 0 ? 2u : 3u);
    rates[i % 2].push_back(report["samplesPerSecond"].get<double>());
    EXPECT_EQ(comparison["runs"][i]["samplesPerSecond"], report["samplesPerSecond"]) << names[i];
  }
  EXPECT_EQ(comparison["equalInput"], true) << comparison["input"];
  EXPECT_EQ(comparison["differences"].size(), 1u) << comparison["differences"];
  const json& prices = comparison["prices"];
  const double alone = (rates[0][0] + rates[0][1]) / 2;
  const double together = (rates[1][0] + rates[1][1]) / 2;
  EXPECT_NEAR(prices["samplesPerSecondRatio"].get<double>(), together / alone, 1e-9);
  EXPECT_NEAR(prices["leastRatio"].get<double>(),
              std::min(rates[1][0] / rates[0][0], rates[1][1] / rates[0][1]), 1e-9);
  EXPECT_NEAR(prices["alone"]["dollarsPerHour"].get<double>(), 2 * 1.408, 1e-9);
  EXPECT_NEAR(prices["withCpuWorkers"]["dollarsPerHour"].get<double>(), 2 * 1.408 + 0.816, 1e-9);
  EXPECT_THAT(prices["notes"].dump(), HasSubstr("both ran on this machine"));
  EXPECT_THAT(comparison["verdict"].get<std::string>(),
              HasSubstr(" pair by pair; a sample costs "));
  // Who was second is first in the next pair.
  EXPECT_LT(result.output.find("pair 1 of 2, the trainers alone"),
            result.output.find("pair 1 of 2, the job with"));
  EXPECT_LT(result.output.find("pair 2 of 2, the job with"),
            result.output.find("pair 2 of 2, the trainers alone"));

  const ProgramResult again = RunProgram(
      "hetero-runtime",
      {"compare", "--baseline-without-cpu-workers", folder / "job.yaml", "--output", out});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.output, HasSubstr("is not empty; remove it, or choose another with --output"));
}

TEST(Compare, CtrlCEndsABaselineAndItsProcesses) {
  TemporaryFolder folder;
  WriteFile(folder / "job.yaml", SmallJobYaml());
  const std::string out = folder / "out";
  ProgramRun run("hetero-runtime",
                 {"compare", "--baseline-without-cpu-workers", folder / "job.yaml", "--steps",
                  "100000000", "--set", "training.epochs=100000000", "--output", out});
  const std::string list = out + "/alone-1/processes.json";
  json processes;
  const auto end = std::chrono::steady_clock::now() + kCompareDeadline;
  while (!processes.is_array() && run.running() && std::chrono::steady_clock::now() < end) {
    if (std::filesystem::exists(list)) {
      processes = json::parse(ReadFileOrDie(list), nullptr, /*allow_exceptions=*/false);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ASSERT_TRUE(processes.is_array());
  run.Signal(SIGINT);
  const ProgramResult result = run.Wait(kCompareDeadline);
  EXPECT_EQ(result.exit_code, 130) << result.output;
  EXPECT_THAT(result.output, HasSubstr("the run of the trainers alone was stopped"));
  for (const json& process : processes) {
    EXPECT_NE(kill(process["pid"].get<pid_t>(), 0), 0) << process;
  }
  EXPECT_FALSE(std::filesystem::exists(out + "/with-cpu-workers-1"));
}

TEST(Compare, SaysWhatItCannotCompare) {
  TemporaryFolder folder;
  WriteFile(folder / "text", "no report");
  std::filesystem::create_directories(folder / "running");
  const ProgramResult unread =
      RunProgram("hetero-runtime", {"compare", folder / "text", folder / "running"});
  EXPECT_EQ(unread.exit_code, 1);
  EXPECT_THAT(unread.output, HasSubstr("text is no report"));  // both are named
  EXPECT_THAT(unread.output, HasSubstr("running has no report.json"));
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {"compare"},
           {"compare", folder / "running"},
           {"compare", "a", "b", "-o", "yaml"},
           {"compare", "a", "b", "--steps", "5"},
           {"compare", "a", "--baseline-without-cpu-workers", "job.yaml"},
           With({"compare"}, std::vector<std::string>(21, "a")),
       }) {
    EXPECT_EQ(RunProgram("hetero-runtime", wrong).exit_code, 2) << json(wrong);
  }
  WriteFile(folder / "job.yaml", SmallJobYaml());
  const ProgramResult none =
      RunProgram("hetero-runtime", {"compare", "--baseline-without-cpu-workers",
                                    folder / "job.yaml", "--set", "roles.cpu.replicas=0"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.output, HasSubstr("the job has no CPU workers to leave out"));
}

}  // namespace
}  // namespace hetero
