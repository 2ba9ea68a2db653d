#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/compare/comparison.h"
#include "tests/unit/runtime/compare/sample_runs.h"
#include "tests/unit/runtime/insight/html_flaw.h"

namespace hetero::compare {
namespace {

using insight::FirstFlaw;
using ::testing::HasSubstr;
using ::testing::Not;

Comparison OfSlowAndFast() {
  return Compare({ReadRun(ReportOfSlowRun(), "out/slow"), ReadRun(ReportOfFastRun(), "out/fast")});
}

TEST(ComparisonHtml, IsWellFormed) {
  EXPECT_EQ(FirstFlaw(ToHtml(OfSlowAndFast())), "");
  const RunReport least = ReadRun({{"job", "a"}, {"state", "Stopped"}});
  EXPECT_EQ(FirstFlaw(ToHtml(Compare({least, least}))), "");
}

TEST(ComparisonHtml, NeedsNothingFromOutside) {
  const std::string html = ToHtml(OfSlowAndFast());
  for (const char* forbidden : {"<script", "http:", "https:", "src=", "@import", "url("}) {
    EXPECT_THAT(html, Not(HasSubstr(forbidden)));
  }
}

TEST(ComparisonHtml, ShowsTablesCurvesAndPhases) {
  const std::string html = ToHtml(OfSlowAndFast());
  for (const char* expected : {"out/fast", "roles[cpu].replicas", "samples/s", "1.88x",
                               "class=\"run c1\"", "var(--p-wait)", "Training loss", "Accuracy",
                               "B is the fastest", "aria-label", "prefers-color-scheme: dark"}) {
    EXPECT_THAT(html, HasSubstr(expected));
  }
}

TEST(ComparisonHtml, IsWellFormedWhateverTheNamesAre) {
  const std::string hostile = "</script><b a='\"'>&\x01\xFF\n";
  Comparison comparison = OfSlowAndFast();
  for (RunReport& run : comparison.runs) {
    run.place = run.job = run.state = run.message = run.digest = hostile;
    run.cpu_seconds[hostile] = 1;
    run.reported[hostile] = 1;
    run.config["spec"][hostile] = hostile + run.place;
  }
  comparison.runs[1].config["spec"][hostile] = 1;
  const std::string html = ToHtml(Compare(comparison.runs));
  EXPECT_EQ(FirstFlaw(html), "");
  EXPECT_THAT(html, Not(HasSubstr("<b a=")));
}

TEST(ComparisonHtml, DrawsTwentyRuns) {
  std::vector<RunReport> runs(kMostRuns, ReadRun(ReportOfSlowRun()));
  const std::string html = ToHtml(Compare(runs));
  EXPECT_EQ(FirstFlaw(html), "");
  EXPECT_THAT(html, HasSubstr("run c3 dash2"));  // T
}

}  // namespace
}  // namespace hetero::compare
