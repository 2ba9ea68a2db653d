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
            R"(runs
  A  out/slow  photos  Succeeded
  B  out/fast  photos  Succeeded

manifests
  pipeline[HorizontalFlip]     - -> {op: HorizontalFlip, placement: Auto, probability: 0.5, r...
  roles[cpu].replicas          2 -> 4
  training.batchSizePerWorker  64 -> 128

figures
                                        A        B
  samples/s                           640    1,200  1.88x
  noise of samples/s                1.0 %    1.0 %
  waiting for data                 48.5 %    3.1 %
  step, median                     100 ms   100 ms  1.00x
  data wait, per sample            758 µs  25.8 µs
  backward, per sample             469 µs   472 µs
  CPU time of cpu, per sample     3.10 ms  3.10 ms  1.00x
  CPU time of gpu, per sample      800 µs   800 µs  1.00x
  start-up                         4.20 s   4.20 s
  training                     1 min 40 s   53.3 s
  wall time                    1 min 45 s   58.0 s
  steps                             1,000      500
  samples                          64,000   64,000
  loss                              0.520    0.550
  accuracy                         87.1 %   86.5 %
  $ per hour                        3.040    4.672  1.54x
  $, whole run                      0.106   0.0752  0.71x
  $ per 1M samples, whole run       1.656    1.175  0.71x
  $ per 1M samples, training        1.319    1.081  0.82x
  samples per $, training         757,895  924,658  1.22x

input    Not the same training input: the stream digests differ.
verdict  B is the fastest: 1.88x the samples per second of A; B is the cheapest per sample: 0.82x what A costs.
)");
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
  old["config"]["spec"]["training"]["seed"] = 5;
  const std::string text = ToText(Compare({ReadRun(old), ReadRun(ReportOfSlowRun())}));
  EXPECT_THAT(text, ::testing::ContainsRegex("accuracy +- +87.1 %"));
  EXPECT_THAT(text, HasSubstr("10.0 % assumed"));
  EXPECT_THAT(text,
              HasSubstr("note     A is too short to show the noise of the rate, and 10.0 % is "
                        "a guess: more steps say more\n"));
}

}  // namespace
}  // namespace hetero::compare
