#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/compare/comparison.h"
#include "tests/unit/runtime/compare/sample_runs.h"

namespace hetero::compare {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ComparisonText, OfTwoRuns) {
  EXPECT_EQ(ToText(Compare(
                {ReadRun(ReportOfSlowRun(), "out/slow"), ReadRun(ReportOfFastRun(), "out/fast")})),
            R"(?)");
}

TEST(ComparisonText, OfEqualRunsSaysSo) {
  const std::string text =
      ToText(Compare({ReadRun(ReportOfSlowRun()), ReadRun(ReportOfSlowRun())}));
  EXPECT_THAT(text, HasSubstr("manifests\n  no difference\n"));
  EXPECT_THAT(text, HasSubstr("Equal training input: the same samples, bit for bit"));
  EXPECT_THAT(text, HasSubstr("A and B are equally fast"));
}

TEST(ComparisonText, NamesRunsThatFailedWereStoppedOrAreOfOtherJobs) {
  nlohmann::json failed = ReportOfSlowRun();
  failed.update({{"state", "Failed"}, {"message", "cpu-1 was lost"}});
  nlohmann::json stopped = ReportOfFastRun();
  stopped.update({{"state", "Stopped"},
                  {"job", "other"},
                  {"streamDigest", nullptr},
                  {"digestProblem", "a script went on"}});
  stopped.erase("config");
  const std::string text = ToText(Compare(
      {ReadRun(ReportOfSlowRun(), "out/a"), ReadRun(failed, "out/b"), ReadRun(stopped, "out/c")}));
  for (const char* expected :
       {"these are runs of different jobs: A is photos, B is photos, C is other\n",
        "B (out/b) failed: cpu-1 was lost; its figures end there, and it is not ranked: run it",
        "C (out/c) ended as Stopped; its figures end there\n",
        "C (out/c) has no manifest in its report (config)\n",
        "Whether all were trained on the same input is not known: C: a script went on."}) {
    EXPECT_THAT(text, HasSubstr(expected));
  }
  EXPECT_THAT(text, Not(HasSubstr("manifests\n")));
}

TEST(ComparisonText, ShowsADashForWhatIsNotKnown) {
  nlohmann::json old = ReportOfSlowRun();
  for (const char* field : {"accuracy", "cpuSecondsPerSample", "phaseSeconds", "timeLines"}) {
    old.erase(field);
  }
  const std::string text = ToText(Compare({ReadRun(old), ReadRun(ReportOfSlowRun())}));
  EXPECT_THAT(text, ::testing::ContainsRegex("accuracy +- +87.1 %"));
  EXPECT_THAT(text, HasSubstr("10.0 % assumed"));
}

}  // namespace
}  // namespace hetero::compare
