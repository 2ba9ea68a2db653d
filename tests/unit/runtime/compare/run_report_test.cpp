#include "runtime/compare/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/runtime/compare/sample_runs.h"

namespace hetero::compare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(ParseReport, ReadsWhatIsCompared) {
  const RunReport run = ReadRun(ReportOfSlowRun(), "here");
  EXPECT_EQ(run.place, "here");
  EXPECT_EQ(run.job, "photos");
  EXPECT_EQ(run.steps, 1000);
  EXPECT_EQ(run.samples, 64000);
  EXPECT_EQ(run.samples_per_second, 640);
  EXPECT_EQ(run.wait_percent, 48.5);
  EXPECT_EQ(run.step_seconds, 0.1);  // the median of the curve's
  EXPECT_EQ(run.phase_seconds.at("backward"), 30);
  EXPECT_THAT(run.cpu_seconds, ElementsAre(Pair("cpu", 0.0031), Pair("gpu", 0.0008)));
  EXPECT_EQ(run.losses.size(), 3u);
  EXPECT_EQ(run.accuracies.back().value, 0.871);
  EXPECT_EQ(run.digest, "00aa");
  EXPECT_EQ(run.cpu_workers, 2);
  EXPECT_DOUBLE_EQ(*run.dollars_per_hour, 2 * 0.816 + 1.408);
  EXPECT_DOUBLE_EQ(*run.TrainingDollarsPerMillion(), (2 * 0.816 + 1.408) / 3600 / 640 * 1e6);
  EXPECT_TRUE(run.unpriced_roles.empty());
}

TEST(ParseReport, LeavesOutOfATimeLineWhatIsNoTraining) {
  nlohmann::json report = ReportOfSlowRun();
  report["timeLines"][0]["points"][2]["phaseSeconds"]["evaluation"] = 0.5;
  report["timeLines"][0]["points"][2]["phaseSeconds"]["checkpoint"] = 0.25;
  EXPECT_DOUBLE_EQ(ReadRun(report).time_line[2].seconds, 5 - 0.75);
}

TEST(ParseReport, TakesWhatIsAbsentOrOfAnotherShapeForNotKnown) {
  const RunReport least = ReadRun({{"job", "a"}, {"state", "Stopped"}});
  EXPECT_FALSE(least.samples_per_second || least.steps || least.dollars || least.step_seconds);
  EXPECT_TRUE(least.config.is_null());
  const RunReport odd = ReadRun({{"job", "a"},
                                 {"state", "Stopped"},
                                 {"samplesPerSecond", "fast"},
                                 {"steps", -3},
                                 {"phaseSeconds", {1, 2}},
                                 {"timeLines", {{{"points", 7}}, 8}},
                                 {"lossCurve", {{{"step", "x"}}, nullptr}},
                                 {"config", {{"spec", {{"roles", {1, {{"name", 2}}}}}}}},
                                 {"aFieldOfTomorrow", true}});
  EXPECT_FALSE(odd.samples_per_second || odd.steps);
  EXPECT_TRUE(odd.phase_seconds.empty() && odd.time_line.empty() && odd.losses.empty());
}

TEST(ParseReport, KnowsWhichRolesHaveNoPrice) {
  nlohmann::json report = ReportOfSlowRun();
  report["config"]["spec"]["roles"][1].erase("pricePerHour");
  EXPECT_THAT(ReadRun(report).unpriced_roles, ElementsAre("cpu"));
  EXPECT_EQ(ReadRun(report).dollars_per_hour, 1.408);
  report["config"]["spec"]["roles"][2].erase("pricePerHour");
  EXPECT_FALSE(ReadRun(report).dollars_per_hour);
  EXPECT_TRUE(ReadRun(report).unpriced_roles.empty());  // no dollars are asked for
}

struct NoReportCase {
  std::string text;
  std::string expected;
};

TEST(ParseReport, NamesTheFileAndSaysWhatToDo) {
  const std::string whole = ReportOfSlowRun().dump();
  for (const NoReportCase& c : std::vector<NoReportCase>{
           {"", "out/x is empty; give a run's output folder"},
           {" \n", "out/x is empty"},
           {"apiVersion: v1\n", "out/x is no report: no JSON at byte 1"},
           {whole.substr(0, whole.size() / 2), "bytes; copy it again from where the job wrote it"},
           {whole.substr(0, whole.size() - 1), "out/x is cut off after"},
           {"[1, 2]", "out/x is no report of a job: it has no fields job and state"},
           {R"({"job": "a"})", "out/x is no report of a job"},
           {std::string(100'000, '['), "out/x is no report: it is nested deeper than 100"},
       }) {
    const absl::Status status = ParseReport(c.text, "out/x").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.text.substr(0, 40);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.expected)) << c.text.substr(0, 40);
  }
}

}  // namespace
}  // namespace hetero::compare
