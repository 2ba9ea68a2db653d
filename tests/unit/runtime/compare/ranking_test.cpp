#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/compare/comparison.h"
#include "tests/unit/runtime/compare/sample_runs.h"

namespace hetero::compare {
namespace {

using ::testing::HasSubstr;

// A run of a job whose machines cost `dollars` an hour; 0: not known. Noise of 1 %.
RunReport RunAt(double rate, double dollars = 0, const std::string& state = "Succeeded") {
  RunReport run;
  run.job = "photos";
  run.state = state;
  run.samples_per_second = rate;
  if (dollars > 0) run.dollars_per_hour = dollars;
  for (int i = 0; i < 8; ++i) run.time_line.push_back({10.0 * i, 1.0 * i});
  return run;
}

Ranking Ranked(const std::vector<RunReport>& runs) { return Compare(runs).ranking; }

TEST(Ranking, NamesTheFastestAndTheCheapest) {
  const Ranking ranking = Ranked({RunAt(100, 1), RunAt(200, 4)});
  EXPECT_EQ(ranking.fastest, 1u);
  EXPECT_EQ(ranking.cheapest, 0u);
  EXPECT_EQ(ranking.sentence,
            "B is the fastest: 2.00x the samples per second of A; A is the cheapest per sample: "
            "0.50x what B costs.");
}

TEST(Ranking, ComparesTheFirstRunWithTheNextWhereItIsTheBest) {
  EXPECT_EQ(Ranked({RunAt(300), RunAt(100), RunAt(200)}).sentence,
            "A is the fastest: 1.50x the samples per second of C.");
}

TEST(Ranking, CallsADifferenceWithinTheNoiseSo) {
  const Ranking ranking = Ranked({RunAt(100), RunAt(101.9)});
  EXPECT_FALSE(ranking.fastest);
  EXPECT_EQ(ranking.sentence,
            "A and B are equally fast: 1.02x apart at most, which is within their noise (2.0 %).");
  EXPECT_EQ(Ranked({RunAt(100), RunAt(102.1)}).fastest, 1u);
}

TEST(Ranking, NamesAllThatAreBest) {
  const Ranking ranking = Ranked({RunAt(50), RunAt(101), RunAt(100)});
  EXPECT_EQ(ranking.fastest, 1u);
  EXPECT_EQ(ranking.sentence,
            "B and C are the fastest and not to be told apart (noise 2.0 %): 2.02x the samples per "
            "second of A.");
}

TEST(Ranking, SaysWhereTheNoiseIsAssumed) {
  RunReport brief = RunAt(105);
  brief.time_line.clear();
  EXPECT_THAT(Ranked({RunAt(100), brief}).sentence,
              HasSubstr("within their noise (11.0 %, assumed for short runs)"));
}

TEST(Ranking, LeavesOutWhatFailed) {
  const Ranking ranking = Ranked({RunAt(100), RunAt(900, 0, "Failed"), RunAt(150)});
  EXPECT_EQ(ranking.fastest, 2u);
  EXPECT_EQ(Ranked({RunAt(100), RunAt(900, 0, "Failed")}).sentence,
            "Only A has a rate to be ranked.");
  EXPECT_EQ(Ranked({RunAt(1, 0, "Failed"), RunAt(900, 0, "Failed")}).sentence,
            "No run that did not fail has a rate.");
}

}  // namespace
}  // namespace hetero::compare
