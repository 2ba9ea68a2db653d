#include "runtime/head/script_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/runtime/head/script_job.h"

namespace hetero::head {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ScriptAgreementTest : public ::testing::Test {
 protected:
  ScriptAgreementTest() { agreement_.Begin(1); }

  std::vector<std::string> Say(int32_t rank, const v1::ScriptWord& word) {
    agreement_.Take(rank, word, kSteps, now_);
    return Describe(agreement_.TakeDecisions());
  }
  // Both ranks begin after `step` steps, whose digest is 0:100.
  void BeginAt(int64_t step, bool proven = true) {
    Say(0, PositionWord(1, step, 100, proven));
    Say(1, PositionWord(1, step, 100, proven));
  }

  static constexpr int64_t kSteps = 40;
  base::Instant now_{std::chrono::hours(1)};
  ScriptAgreement agreement_{{.ranks = 2}};
};

TEST_F(ScriptAgreementTest, NobodyBeginsBeforeAllHaveSaidTheSame) {
  EXPECT_THAT(Say(0, PositionWord(1, 7)), IsEmpty());
  EXPECT_THAT(Say(0, PositionWord(1, 7)), IsEmpty()) << "a rank that dials again counts once";
  EXPECT_THAT(Say(1, PositionWord(1, 7)), ElementsAre("agree 7"));
  EXPECT_THAT(Say(1, PositionWord(1, 7)), IsEmpty());
  EXPECT_EQ(agreement_.difference(), "");
}

TEST_F(ScriptAgreementTest, OtherStepsAreNamedWithTheirRanksAndARemedy) {
  Say(0, PositionWord(1, 12));
  EXPECT_THAT(Say(1, PositionWord(1, 0)), IsEmpty());
  EXPECT_THAT(agreement_.difference(), HasSubstr("(step 0: rank 1; step 12: rank 0)"));
  EXPECT_THAT(agreement_.difference(), HasSubstr("load the same state"));
  EXPECT_FALSE(agreement_.position().has_value());
  EXPECT_FALSE(agreement_.Prepare(true, 0, now_));
}

TEST_F(ScriptAgreementTest, StatesOfOtherTrainingAreToldApartByTheirDigests) {
  Say(0, PositionWord(1, 12, 5));
  EXPECT_THAT(Say(1, PositionWord(1, 12, 6)), IsEmpty());
  EXPECT_THAT(agreement_.difference(), HasSubstr("states of different training"));
}

TEST_F(ScriptAgreementTest, ARankThatDoesNotKnowTheDigestTakesTheOthers) {
  Say(0, PositionWord(1, 12, 0, /*proven=*/false));
  EXPECT_THAT(Say(1, PositionWord(1, 12, 6)), ElementsAre("agree 12"));
  ASSERT_TRUE(agreement_.position().has_value());
  EXPECT_TRUE(agreement_.position()->proven());
  EXPECT_EQ(agreement_.position()->digest_low(), 6u);
}

TEST_F(ScriptAgreementTest, TheDigestOfAStepIsTheBaseAndAllSums) {
  BeginAt(10);
  EXPECT_THAT(Say(0, DigestWord(1, 12, 1, 3)), IsEmpty());
  EXPECT_THAT(Say(0, DigestWord(1, 12, 1, 3)), IsEmpty()) << "said again it is not added again";
  EXPECT_THAT(Say(1, DigestWord(1, 12, 4, UINT64_MAX)), ElementsAre("digest 12 = 6:102"))
      << "with the carry of 128 bits";
}

TEST_F(ScriptAgreementTest, RanksAreAskedOnceForADigestThatOneWants) {
  BeginAt(10);
  EXPECT_THAT(Say(0, WantDigestWord(1, 13)), ElementsAre("want 13"));
  EXPECT_THAT(Say(1, WantDigestWord(1, 13)), IsEmpty());
  Say(0, DigestWord(1, 13, 0, 1));
  EXPECT_THAT(Say(1, DigestWord(1, 13, 0, 2)), ElementsAre("digest 13 = 0:103"));
  EXPECT_THAT(Say(1, WantDigestWord(1, 13)), ElementsAre("digest 13 = 0:103"));
  EXPECT_THAT(Say(1, WantDigestWord(1, 10)), ElementsAre("digest 10 = 0:100"));
}

TEST_F(ScriptAgreementTest, WithoutADigestToGoOnFromNoneIsProven) {
  BeginAt(10, /*proven=*/false);
  EXPECT_THAT(Say(0, WantDigestWord(1, 13)), ElementsAre("digest 13 unproven"));
}

TEST_F(ScriptAgreementTest, KeepsTheSumsOfTheLatestStepsAlone) {
  BeginAt(0);
  for (int64_t step = 1; step <= 100; ++step) Say(0, DigestWord(1, step, 0, 1));
  EXPECT_THAT(Say(1, DigestWord(1, 36, 0, 1)), IsEmpty()) << "64 are kept: 37 to 100";
  EXPECT_THAT(Say(1, DigestWord(1, 37, 0, 1)), ElementsAre("digest 37 = 0:102"));
  EXPECT_THAT(Say(1, DigestWord(1, 100, 0, 1)), ElementsAre("digest 100 = 0:102"));
}

TEST_F(ScriptAgreementTest, ACheckpointIsAfterTheLatestStepThatARankHasPassed) {
  BeginAt(10);
  EXPECT_TRUE(agreement_.Prepare(false, 15, now_));
  EXPECT_THAT(Describe(agreement_.TakeDecisions()), ElementsAre("prepare 17"));
  EXPECT_THAT(Say(0, AnswerWord(1, 19)), IsEmpty());
  EXPECT_THAT(Say(0, AnswerWord(1, 19)), IsEmpty());
  EXPECT_THAT(Say(1, AnswerWord(1, 17)), ElementsAre("commit 19"));
  EXPECT_FALSE(agreement_.stop_step().has_value());
  EXPECT_THAT(Say(1, AnswerWord(1, 19)), IsEmpty()) << "an answer told again begins nothing";
}

// What a rank says again on a new stream may have been its answer to an earlier question.
TEST_F(ScriptAgreementTest, AnAnswerBeforeTheStepThatIsAskedForIsNone) {
  BeginAt(10);
  agreement_.Prepare(false, 20, now_);
  EXPECT_THAT(Describe(agreement_.TakeDecisions()), ElementsAre("prepare 22"));
  EXPECT_THAT(Say(0, AnswerWord(1, 13)), IsEmpty());
  EXPECT_THAT(Say(1, AnswerWord(1, 22)), IsEmpty());
  EXPECT_THAT(Say(0, AnswerWord(1, 22)), ElementsAre("commit 22"));
}

TEST_F(ScriptAgreementTest, AStopJoinsTheCheckpointThatIsUnderWay) {
  BeginAt(10);
  agreement_.Prepare(false, 10, now_);
  agreement_.Prepare(true, 30, now_);
  EXPECT_THAT(Describe(agreement_.TakeDecisions()), ElementsAre("prepare 12"));
  Say(0, AnswerWord(1, 12));
  EXPECT_THAT(Say(1, AnswerWord(1, 12)), ElementsAre("commit 12 stop"));
  EXPECT_EQ(agreement_.stop_step(), 12);
  EXPECT_TRUE(agreement_.Prepare(true, 12, now_)) << "and stands";
  EXPECT_THAT(Describe(agreement_.TakeDecisions()), IsEmpty());
}

TEST_F(ScriptAgreementTest, ARankThatWantsToLeaveStopsAll) {
  BeginAt(10);
  EXPECT_THAT(Say(1, StopWishWord(1)), ElementsAre("prepare 12"));
  Say(0, AnswerWord(1, 12));
  EXPECT_THAT(Say(1, AnswerWord(1, 12)), ElementsAre("commit 12 stop"));
}

// Ranks say all again to a head that takes over, one after the other.
TEST_F(ScriptAgreementTest, AWishToLeaveIsKeptUntilAllHaveSaidWhereTheyBegan) {
  Say(1, PositionWord(1, 10));
  EXPECT_THAT(Say(1, StopWishWord(1)), IsEmpty());
  EXPECT_THAT(Say(0, PositionWord(1, 10)), ElementsAre("agree 10", "prepare 12"));
  Say(0, AnswerWord(1, 12));
  EXPECT_THAT(Say(1, AnswerWord(1, 12)), ElementsAre("commit 12 stop"));
}

TEST_F(ScriptAgreementTest, AWishToLeaveOfAnEarlierGenerationIsOver) {
  Say(1, PositionWord(1, 10));
  Say(1, StopWishWord(1));
  agreement_.Begin(2);
  Say(0, PositionWord(2, 10));
  EXPECT_THAT(Say(1, PositionWord(2, 10)), ElementsAre("g2 agree 10"));
}

TEST_F(ScriptAgreementTest, RankZeroSaysWhereItsScriptListensAndWhoComesLaterHearsIt) {
  EXPECT_THAT(Say(1, MasterWord(1, "10.0.0.9", 1)), IsEmpty()) << "another rank cannot say it";
  EXPECT_THAT(Say(0, MasterWord(1, "10.0.0.7", 29500)), ElementsAre("master 10.0.0.7 29500"));
  EXPECT_THAT(Say(0, MasterWord(1, "10.0.0.7", 29500)), IsEmpty());
  EXPECT_THAT(Describe(agreement_.Decided()), ElementsAre("master 10.0.0.7 29500"));
  agreement_.Begin(2);
  EXPECT_THAT(Describe(agreement_.Decided()), IsEmpty());
}

TEST_F(ScriptAgreementTest, AfterTheLastStepThereIsNothingToStop) {
  BeginAt(38);
  agreement_.Prepare(true, 38, now_);
  agreement_.TakeDecisions();
  Say(0, AnswerWord(1, 40));
  EXPECT_THAT(Say(1, AnswerWord(1, 40)), ElementsAre("commit 40"));
  EXPECT_FALSE(agreement_.stop_step().has_value());
  Say(0, EndedWord(1));
  EXPECT_THAT(Say(1, EndedWord(1)), ElementsAre("ended"));
}

TEST_F(ScriptAgreementTest, RanksThatDoNotAnswerDoWithoutTheCheckpoint) {
  BeginAt(10);
  agreement_.Prepare(true, 10, now_);
  Say(0, AnswerWord(1, 12));
  now_ += ScriptAgreement::kAnswerGrace - std::chrono::milliseconds(1);
  agreement_.Look(10, now_);
  EXPECT_FALSE(agreement_.gave_up_stop());
  now_ += std::chrono::milliseconds(1);
  agreement_.Look(10, now_);
  EXPECT_TRUE(agreement_.gave_up_stop());
}

// A head that was stalled hears the last answer before it looks at its clock; a rank that has given
// up meanwhile does not save.
TEST_F(ScriptAgreementTest, AnAnswerThatComesTooLateIsNone) {
  BeginAt(10);
  agreement_.Prepare(true, 10, now_);
  agreement_.TakeDecisions();
  Say(0, AnswerWord(1, 12));
  now_ += ScriptAgreement::kAnswerGrace;
  EXPECT_THAT(Say(1, AnswerWord(1, 12)), IsEmpty());
  EXPECT_FALSE(agreement_.stop_step().has_value());
  agreement_.Look(10, now_);
  EXPECT_TRUE(agreement_.gave_up_stop());
}

TEST(ScriptAgreementClockTest, SavesByTheClock) {
  ScriptAgreement agreement({.ranks = 1, .checkpoint_interval = seconds(60)});
  base::Instant now{std::chrono::hours(1)};
  agreement.Begin(1);
  agreement.Look(0, now);
  EXPECT_THAT(Describe(agreement.TakeDecisions()), IsEmpty()) << "nobody has begun";
  agreement.Take(0, PositionWord(1, 0), 1000, now);
  agreement.TakeDecisions();
  now += seconds(59);
  agreement.Look(100, now);
  EXPECT_THAT(Describe(agreement.TakeDecisions()), IsEmpty());
  now += seconds(1);
  agreement.Look(101, now);
  EXPECT_THAT(Describe(agreement.TakeDecisions()), ElementsAre("prepare 103"));
  agreement.Take(0, AnswerWord(1, 103), 1000, now);
  EXPECT_THAT(Describe(agreement.TakeDecisions()), ElementsAre("commit 103"));
  now += seconds(59);
  agreement.Look(200, now);
  EXPECT_THAT(Describe(agreement.TakeDecisions()), IsEmpty());
  now += seconds(1);
  agreement.Look(200, now);
  EXPECT_THAT(Describe(agreement.TakeDecisions()), ElementsAre("prepare 202"));
}

// At the end of an epoch all ranks save by themselves, and tell the step's digest.
TEST(ScriptAgreementClockTest, WhatTheRanksHaveSavedCounts) {
  ScriptAgreement agreement({.ranks = 1, .checkpoint_interval = seconds(60)});
  base::Instant now{std::chrono::hours(1)};
  agreement.Begin(1);
  agreement.Take(0, PositionWord(1, 0), 1000, now);
  now += seconds(59);
  v1::ScriptWord saved = DigestWord(1, 99, 0, 1);
  saved.mutable_digest()->set_saves(true);
  agreement.Take(0, saved, 1000, now);
  agreement.TakeDecisions();
  now += seconds(59);
  agreement.Take(0, DigestWord(1, 100, 0, 1), 1000, now);  // looked at, and not saved
  agreement.TakeDecisions();
  agreement.Look(100, now);
  EXPECT_THAT(Describe(agreement.TakeDecisions()), IsEmpty());
  now += seconds(1);
  agreement.Look(101, now);
  EXPECT_THAT(Describe(agreement.TakeDecisions()), ElementsAre("prepare 103"));
}

TEST_F(ScriptAgreementTest, TheJobIsDoneWhenAllScriptsAre) {
  BeginAt(10);
  EXPECT_THAT(Say(0, EndedWord(1)), IsEmpty());
  EXPECT_THAT(Say(0, EndedWord(1)), IsEmpty());
  EXPECT_THAT(Say(1, EndedWord(1)), ElementsAre("ended"));
}

TEST_F(ScriptAgreementTest, ScriptsThatEndBecauseTheyStopAreNotDone) {
  BeginAt(10);
  agreement_.Prepare(true, 10, now_);
  agreement_.TakeDecisions();
  Say(0, AnswerWord(1, 12));
  Say(1, AnswerWord(1, 12));
  Say(0, EndedWord(1));
  EXPECT_THAT(Say(1, EndedWord(1)), IsEmpty());
  EXPECT_TRUE(agreement_.HasEnded(1));
}

TEST_F(ScriptAgreementTest, WhoeverDialsAgainHearsAllThatWasDecided) {
  EXPECT_THAT(Describe(agreement_.Decided()), IsEmpty());
  BeginAt(10);
  Say(0, DigestWord(1, 12, 0, 1));
  Say(1, DigestWord(1, 12, 0, 2));
  Say(1, WantDigestWord(1, 13));
  agreement_.Prepare(false, 13, now_);
  Say(0, AnswerWord(1, 15));
  Say(1, AnswerWord(1, 15));
  agreement_.Prepare(false, 15, now_);
  EXPECT_THAT(Describe(agreement_.Decided()),
              ElementsAre("agree 10", "digest 12 = 0:103", "want 13", "commit 15", "prepare 17"));
}

// The head before had told one rank of the checkpoint, or was about to.
TEST_F(ScriptAgreementTest, AnAnswerToAnotherHeadIsAskedForAgain) {
  BeginAt(10);
  EXPECT_THAT(Say(1, AnswerWord(1, 20)), ElementsAre("prepare 22"));
  Say(0, AnswerWord(1, 22));
  EXPECT_THAT(Say(1, AnswerWord(1, 22)), ElementsAre("commit 22"));
}

TEST_F(ScriptAgreementTest, WordsOfOtherGenerationsAndRanksAreNotHeard) {
  Say(0, PositionWord(1, 7));
  EXPECT_THAT(Say(1, PositionWord(2, 7)), IsEmpty());
  EXPECT_THAT(Say(2, PositionWord(1, 7)), IsEmpty());
  EXPECT_THAT(Say(-1, PositionWord(1, 7)), IsEmpty());
  EXPECT_THAT(Say(1, PositionWord(1, -7)), IsEmpty());
  EXPECT_THAT(Say(1, PositionWord(1, 7)), ElementsAre("agree 7"));
}

TEST_F(ScriptAgreementTest, AnotherGenerationBeginsWithNothing) {
  BeginAt(10);
  agreement_.Prepare(true, 10, now_);
  Say(0, AnswerWord(1, 12));
  Say(1, AnswerWord(1, 12));
  Say(0, EndedWord(1));
  agreement_.Begin(1);
  EXPECT_EQ(agreement_.stop_step(), 12) << "it is under way";
  agreement_.Begin(2);
  EXPECT_THAT(Describe(agreement_.Decided()), IsEmpty());
  EXPECT_FALSE(agreement_.HasEnded(0));
  EXPECT_THAT(Say(0, PositionWord(2, 12)), IsEmpty());
  EXPECT_THAT(Say(1, PositionWord(2, 12)), ElementsAre("g2 agree 12"));
  EXPECT_FALSE(agreement_.stop_step().has_value());
}

}  // namespace
}  // namespace hetero::head
