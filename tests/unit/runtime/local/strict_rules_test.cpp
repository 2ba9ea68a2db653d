#include "runtime/local/strict_rules.h"

#include <gtest/gtest.h>

#include <fstream>

#include "runtime/insight/report.h"
#include "tests/support/temporary_folder.h"

namespace hetero::local {
namespace {

insight::Report ReportWith(std::vector<insight::ReportFinding> findings) {
  insight::Report report;
  report.job = "quickstart";
  report.state = "Succeeded";
  report.findings = std::move(findings);
  return report;
}

insight::ReportFinding InputBound(bool active) {
  return {.rule = "InputBound",
          .message = "rank 0 waits for data 40 % of its time",
          .remedy = "set roles.cpu.replicas to 4",
          .seconds = 12.5,
          .dollars = 0.75,
          .since = "2026-03-01T12:00:05Z",
          .active = active};
}

TEST(StrictRulesTest, OnlyWhatStillHeldCounts) {
  EXPECT_EQ(*HeldFindings(insight::ToJson(ReportWith({}))), "");
  EXPECT_EQ(*HeldFindings(insight::ToJson(ReportWith({InputBound(false)}))), "");
  EXPECT_EQ(*HeldFindings(insight::ToJson(ReportWith({InputBound(true)}))),
            "--strict-rules: 1 finding at the end of the job\n"
            "  InputBound: rank 0 waits for data 40 % of its time; set roles.cpu.replicas to 4 "
            "(cost 12.5 s of training, $0.750)\n");
  EXPECT_EQ(*HeldFindings(insight::ToJson(ReportWith(
                {{.rule = "SlowWorker", .message = "it is slow", .member = "cpu-1", .active = true},
                 InputBound(false),
                 {.rule = "ClockSkew", .message = "clocks differ", .active = true}}))),
            "--strict-rules: 2 findings at the end of the job\n"
            "  SlowWorker (cpu-1): it is slow\n"
            "  ClockSkew: clocks differ\n");
}

TEST(StrictRulesTest, ReportsOfOtherVersionsAreRead) {
  EXPECT_EQ(*HeldFindings("{}"), "");
  EXPECT_EQ(*HeldFindings(R"({"findings": "none"})"), "");
  EXPECT_EQ(*HeldFindings(R"({"findings": [7, {"rule": 1, "seconds": "a", "active": "yes"}]})"),
            "");
}

TEST(StrictRulesTest, WhatIsNoReportIsAnError) {
  EXPECT_TRUE(absl::IsInvalidArgument(HeldFindings("").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(HeldFindings("[]").status()));
}

TEST(StrictRulesTest, TheReportIsInTheOutputFolder) {
  const testing::TemporaryFolder folder;
  EXPECT_TRUE(absl::IsNotFound(HeldFindingsIn(folder.path()).status()));
  std::ofstream(folder.path() + "/report.json")
      << insight::ToJson(ReportWith({InputBound(true), InputBound(false)}));
  EXPECT_EQ(HeldFindingsIn(folder.path())->substr(0, 25), "--strict-rules: 1 finding");
}

}  // namespace
}  // namespace hetero::local
