// Jobs whose ranks run scripts: what State does about their words, failures and ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/head/status_builder.h"
#include "tests/unit/runtime/head/long_job.h"
#include "tests/unit/runtime/head/script_job.h"

namespace hetero::head {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr StreamId kRanks[] = {20, 21, 30};

class ScriptDrive : public Drive {
 public:
  explicit ScriptDrive(api::HeteroTrainingJob job = MakeScriptJob()) : Drive(std::move(job)) {
    JoinAll();
  }
  std::vector<Action> Say(StreamId stream, const v1::ScriptWord& word) {
    return Apply(ScriptWordReceived{stream, word});
  }
  std::vector<Action> AllSay(const v1::ScriptWord& word) {
    std::vector<Action> all;
    for (const StreamId stream : kRanks) {
      for (Action& action : Say(stream, word)) all.push_back(std::move(action));
    }
    return all;
  }
  // A heartbeat with a failure, as it comes every second until the next generation opens.
  std::vector<Action> Fail(StreamId stream, int32_t rank, int64_t generation,
                           const std::string& line, bool fatal = false) {
    v1::Heartbeat heartbeat;
    heartbeat.set_broken_generation(generation);
    v1::ScriptFailure& failure = *heartbeat.mutable_script_failure();
    failure.set_generation(generation);
    failure.set_rank(rank);
    failure.set_step(5);
    failure.set_exit_code(1);
    failure.set_fatal(fatal);
    failure.set_message("the script of rank " + std::to_string(rank) + " ended\n" + line);
    return Apply(HeartbeatReceived{stream, heartbeat});
  }
  // Ticks alone: a heartbeat without a failure would say that there is none.
  std::vector<Action> Wait(base::Duration duration) { return Pass(duration, {}); }
};

TEST(StateScriptsTest, AllRanksHearOfTheAgreement) {
  ScriptDrive drive;
  EXPECT_THAT(ToldTo(20, drive.Say(20, PositionWord(1, 7))), IsEmpty());
  EXPECT_THAT(ToldTo(20, drive.Say(21, PositionWord(1, 7))), IsEmpty());
  const auto actions = drive.Say(30, PositionWord(1, 7));
  for (const StreamId stream : kRanks) EXPECT_THAT(ToldTo(stream, actions), ElementsAre("agree 7"));
  EXPECT_THAT(ToldTo(10, actions), IsEmpty()) << "a CPU worker";
}

TEST(StateScriptsTest, ScriptsThatBeginAtOtherStepsFailTheJob) {
  ScriptDrive drive;
  drive.Say(20, PositionWord(1, 7));
  drive.Say(21, PositionWord(1, 7));
  EXPECT_THAT(Stopped(drive.Say(30, PositionWord(1, 0))), UnorderedElementsAre(10, 20, 21, 30));
  ASSERT_TRUE(drive.state.record().first_failure.has_value());
  EXPECT_THAT(drive.state.record().first_failure->message(),
              AllOf(HasSubstr("step 0: rank 2; step 7: ranks 0, 1"), HasSubstr("load the same")));
}

// Nothing else reaches the head between the opening of a generation and what rank 0 says first.
TEST(StateScriptsTest, TheFirstWordOfAGenerationIsHeard) {
  ScriptDrive drive;
  EXPECT_THAT(ToldTo(21, drive.Say(20, MasterWord(1, "a", 1))), ElementsAre("master a 1"));
  drive.AllSay(PositionWord(1, 3));
  drive.Fail(21, 1, 1, "disk full");
  while (drive.state.record().generation == 1) drive.Wait(milliseconds(100));
  EXPECT_THAT(ToldTo(21, drive.Say(20, MasterWord(2, "a", 2))), ElementsAre("g2 master a 2"));
}

TEST(StateScriptsTest, ARankThatDialsAgainHearsWhatItMissed) {
  ScriptDrive drive;
  drive.Say(20, PositionWord(1, 7));
  drive.Say(21, PositionWord(1, 7));
  drive.Apply(StreamClosed{21});
  EXPECT_THAT(ToldTo(21, drive.Say(30, PositionWord(1, 7))), IsEmpty()) << "it has no stream";
  v1::Hello again = MakeHello("gpu", 0, 1);
  again.set_generation(1);
  EXPECT_THAT(ToldTo(41, drive.Hello(41, again)), ElementsAre("agree 7"));
  EXPECT_THAT(ToldTo(20, drive.Say(41, PositionWord(1, 7))), IsEmpty()) << "nothing is new";
  EXPECT_EQ(drive.state.record().generation, 1);
}

TEST(StateScriptsTest, AJobOfTrainersHearsNoWords) {
  Drive drive;
  drive.JoinAll();
  for (const StreamId stream : kRanks) {
    EXPECT_THAT(drive.Apply(ScriptWordReceived{stream, EndedWord(1)}), IsEmpty());
  }
}

// --- A head that takes another's place ---

TEST(StateScriptsTest, AHeadThatIsReplacedAmidAnAgreementHearsEverythingAgain) {
  LongJob job(MakeScriptJob());
  job.JoinAll();
  job.Apply(ScriptWordReceived{20, PositionWord(1, 7)});
  job.Apply(ScriptWordReceived{21, PositionWord(1, 7)});
  job.ReplaceHead();
  job.Join(10, "cpu", 0, 1, 1);
  // Each rank says it at once when it is welcome, before all are there.
  job.Join(20, "gpu", 0, 1, 1);
  job.Apply(ScriptWordReceived{20, PositionWord(1, 7)});
  job.Join(30, "big", 0, 1, 1);
  job.Apply(ScriptWordReceived{30, PositionWord(1, 7)});
  EXPECT_EQ(job.state->record().generation, 0);
  job.Join(21, "gpu", 1, 1, 1);
  EXPECT_EQ(job.state->record().generation, 1);
  const auto actions = job.Apply(ScriptWordReceived{21, PositionWord(1, 7)});
  for (const StreamId stream : kRanks) EXPECT_THAT(ToldTo(stream, actions), ElementsAre("agree 7"));
}

TEST(StateScriptsTest, ARankThatWasAwayHearsWhatWasDecidedWhileCpuWorkersAreStillAwaited) {
  LongJob job(MakeScriptJob());
  job.JoinAll();
  job.ReplaceHead();
  job.Join(20, "gpu", 0, 1, 1);
  job.Join(21, "gpu", 1, 1, 1);
  job.Join(30, "big", 0, 1, 1);
  ASSERT_EQ(job.state->record().generation, 1);
  for (const StreamId stream : kRanks) job.Apply(ScriptWordReceived{stream, PositionWord(1, 7)});
  job.Apply(StreamClosed{30});
  EXPECT_THAT(ToldTo(31, job.Join(31, "big", 0, 1, 1)), ElementsAre("agree 7"));
}

TEST(StateScriptsTest, AStopThatMeetsAHeadWhichHasJustTakenOverLetsAllSave) {
  LongJob job(MakeScriptJob());
  job.JoinAll();
  for (const StreamId stream : kRanks) job.Apply(ScriptWordReceived{stream, PositionWord(1, 7)});
  job.ReplaceHead();
  job.Join(20, "gpu", 0, 1, 1);
  EXPECT_THAT(Stopped(job.Apply(StopRequested{"suspended"})), IsEmpty());
  job.Join(10, "cpu", 0, 1, 1);
  job.Join(30, "big", 0, 1, 1);
  job.Join(21, "gpu", 1, 1, 1);
  std::vector<Action> last;
  for (const StreamId stream : kRanks) {
    last = job.Apply(ScriptWordReceived{stream, PositionWord(1, 7)});
  }
  EXPECT_THAT(ToldTo(20, last), ElementsAre("agree 7", "prepare 9"));
  for (const StreamId stream : kRanks)
    last = job.Apply(ScriptWordReceived{stream, AnswerWord(1, 9)});
  EXPECT_THAT(ToldTo(20, last), ElementsAre("commit 9 stop"));
}

TEST(StateScriptsTest, AStopWaitsNoLongerThanForAnswersForRanksThatDoNotComeBack) {
  LongJob job(MakeScriptJob());
  job.JoinAll();
  for (const StreamId stream : kRanks) job.Apply(ScriptWordReceived{stream, PositionWord(1, 7)});
  job.ReplaceHead();
  job.Join(20, "gpu", 0, 1, 1);
  EXPECT_THAT(Stopped(job.Apply(StopRequested{"suspended"})), IsEmpty());
  job.Pass(milliseconds(4800), {20});
  job.elapsed += milliseconds(100);
  EXPECT_THAT(Stopped(job.Apply(Tick{})), IsEmpty());
  job.elapsed += milliseconds(100);
  EXPECT_THAT(Stopped(job.Apply(Tick{})), ElementsAre(20));
}

TEST(StateScriptsTest, AfterTheHeadWasReplacedSumsGoOnFromThePosition) {
  LongJob job(MakeScriptJob());
  job.JoinAll();
  job.ReplaceHead();
  job.JoinAll(1, 1);
  std::vector<Action> last;
  for (const StreamId stream : kRanks) {
    job.Apply(ScriptWordReceived{stream, PositionWord(1, 7, 100)});
    last = job.Apply(ScriptWordReceived{stream, DigestWord(1, 9, 0, 1)});
  }
  EXPECT_THAT(ToldTo(20, last), ElementsAre("digest 9 = 0:103"));
}

TEST(StateScriptsTest, AFailureThatTheHeadBeforeHasCountedCountsOnce) {
  LongJob job(MakeScriptJob());
  job.JoinAll();
  v1::Heartbeat heartbeat;
  heartbeat.set_broken_generation(1);
  heartbeat.mutable_script_failure()->set_generation(1);
  heartbeat.mutable_script_failure()->set_rank(1);
  heartbeat.mutable_script_failure()->set_message("KeyError");
  job.Tell(20, {});
  job.Tell(21, heartbeat);
  job.elapsed += milliseconds(1100);
  job.Apply(Tick{});
  ASSERT_EQ(job.state->record().script_restarts, 1);
  ASSERT_EQ(job.state->record().generation, 2);
  job.ReplaceHead();
  EXPECT_EQ(job.state->record().script_restarts, 1);
  // Its rank has not heard of the new generation yet.
  job.JoinAll(1, 1);
  job.Tell(21, heartbeat);
  job.elapsed += milliseconds(1100);
  job.Tell(21, heartbeat);
  EXPECT_EQ(job.state->record().script_restarts, 1);
  EXPECT_EQ(job.Report().script_restarts, 1);
  EXPECT_THAT(job.state->record().script_failures, SizeIs(1));
}

TEST(StateScriptsTest, TheNextAttemptHasWhatThisOneLeavesOfMaxRestarts) {
  LongJob job(MakeScriptJob());
  job.JoinAll();
  v1::Heartbeat heartbeat;
  heartbeat.set_broken_generation(1);
  heartbeat.mutable_script_failure()->set_generation(1);
  heartbeat.mutable_script_failure()->set_message("KeyError");
  job.Tell(20, heartbeat);
  job.elapsed += milliseconds(1100);
  job.Apply(Tick{});
  job.NextAttempt(job.HistoryText());
  job.JoinAll(2);
  const JobRecord& record = job.state->record();
  EXPECT_EQ(record.script_restarts, 0) << "of this attempt";
  EXPECT_EQ(BuildStatus(record, job.state->plan()).script_restarts(), 0);
  EXPECT_EQ(job.Report().script_restarts, 1) << "of the job";
  job.ReplaceHead();
  EXPECT_EQ(job.state->record().past.script_restarts, 1);
}

// --- Failures ---

TEST(StateScriptsTest, AFailedScriptOpensTheNextGenerationAndCostsOneRestart) {
  ScriptDrive drive;
  drive.AllSay(PositionWord(1, 0));
  drive.Fail(20, 0, 1, "Connection reset by peer");
  drive.Fail(21, 1, 1, "KeyError: 'image'");
  EXPECT_THAT(Only<OpenGeneration>(drive.Wait(milliseconds(900))), IsEmpty());
  EXPECT_THAT(Only<OpenGeneration>(drive.Wait(milliseconds(200))), SizeIs(1));
  const JobRecord& record = drive.state.record();
  EXPECT_EQ(record.generation, 2);
  EXPECT_EQ(record.script_restarts, 1);
  EXPECT_EQ(BuildStatus(record, drive.state.plan()).script_restarts(), 1);
  ASSERT_THAT(record.faults, SizeIs(1));
  EXPECT_FALSE(record.faults[0].recovery_seconds.has_value());
  drive.Fail(21, 1, 1, "KeyError: 'image'");  // was on its way
  EXPECT_EQ(record.script_restarts, 1);
  EXPECT_THAT(ToldTo(30, drive.AllSay(PositionWord(2, 4))), ElementsAre("g2 agree 4"));
  EXPECT_TRUE(record.faults[0].recovery_seconds.has_value());
}

TEST(StateScriptsTest, AScriptThatFailsAfterAnotherHasEndedMakesAllStartAgain) {
  ScriptDrive drive;
  drive.AllSay(PositionWord(1, 0));
  drive.Say(20, EndedWord(1));
  drive.Say(30, EndedWord(1));
  drive.Fail(21, 1, 1, "at the very end");
  drive.Wait(milliseconds(1100));
  EXPECT_EQ(drive.state.record().generation, 2);
  EXPECT_THAT(ToldTo(20, drive.Say(21, EndedWord(1))), IsEmpty()) << "of the generation before";
}

TEST(StateScriptsTest, OneRestartMoreThanAllowedFailsTheJobWithTheMessage) {
  ScriptDrive drive;
  for (int64_t generation = 1; generation <= 2; ++generation) {
    drive.Fail(21, 1, generation, "failure " + std::to_string(generation));
    drive.Wait(seconds(31));  // generations without a step wait longer
    ASSERT_EQ(drive.state.record().generation, generation + 1);
    for (const StreamId stream : {10, 20, 21, 30}) drive.Apply(HeartbeatReceived{stream, {}});
  }
  drive.Fail(21, 1, 3, "failure 3");
  EXPECT_THAT(Stopped(drive.Wait(seconds(2))), SizeIs(4));
  const JobRecord& record = drive.state.record();
  ASSERT_TRUE(record.first_failure.has_value());
  EXPECT_EQ(record.first_failure->member(), "gpu-0.1");
  EXPECT_THAT(record.first_failure->message(),
              AllOf(HasSubstr("maxRestarts"), HasSubstr("failure 3")));
  EXPECT_EQ(record.script_restarts, 2);
}

TEST(StateScriptsTest, AMisuseFailsTheJobAtOnce) {
  ScriptDrive drive;
  const auto actions = drive.Fail(21, 1, 1, "the state is of another dataset", /*fatal=*/true);
  EXPECT_THAT(Stopped(actions), SizeIs(4));
  EXPECT_EQ(drive.state.record().first_failure->member(), "gpu-0.1");
}

// A crash at step 5 after one at step 20 was not taken for a generation with a step.
TEST(StateScriptsTest, StepsThatAreDoneAgainAreSteps) {
  api::HeteroTrainingJob job = MakeScriptJob();
  job.spec.run_policy.max_restarts = 10;
  ScriptDrive drive(job);
  v1::Heartbeat heartbeat;
  for (int64_t generation = 1; generation <= 4; ++generation) {
    drive.AllSay(PositionWord(generation, 0));
    heartbeat.mutable_progress()->set_step(generation == 1 ? 20 : 5);
    for (const StreamId stream : kRanks) drive.Apply(HeartbeatReceived{stream, heartbeat});
    drive.Wait(milliseconds(100));
    drive.Fail(21, 1, generation, "failure " + std::to_string(generation));
    drive.Wait(milliseconds(1100));
    EXPECT_EQ(drive.state.record().generation, generation + 1) << "with the shortest grace";
  }
}

// --- Ends ---

TEST(StateScriptsTest, TheJobSucceedsWhenAllScriptsHaveEnded) {
  ScriptDrive drive;
  drive.AllSay(PositionWord(1, 0));
  EXPECT_THAT(ToldTo(20, drive.Say(20, EndedWord(1))), IsEmpty());
  drive.Say(21, EndedWord(1));
  const auto actions = drive.Say(30, EndedWord(1));
  for (const StreamId stream : kRanks) EXPECT_THAT(ToldTo(stream, actions), ElementsAre("ended"));
  for (const StreamId stream : {20, 21, 30, 10}) drive.Finish(stream, true);
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::SUCCEEDED);
}

// The head before was lost between two of its words.
TEST(StateScriptsTest, WhenOneRankHasLeftWithTheResultTheOthersMayToo) {
  LongJob job(MakeScriptJob());
  job.JoinAll();
  job.ReplaceHead();
  job.Join(10, "cpu", 0, 1, 1);
  job.Join(21, "gpu", 1, 1, 1);
  job.Join(30, "big", 0, 1, 1);
  job.Apply(ScriptWordReceived{21, EndedWord(1)});
  job.Apply(ScriptWordReceived{30, EndedWord(1)});
  job.Join(20, "gpu", 0, 1, 1);
  v1::Finished finished;
  finished.set_ok(true);
  const auto actions = job.Apply(FinishedReceived{20, finished});
  EXPECT_THAT(ToldTo(21, actions), ElementsAre("ended"));
  EXPECT_THAT(ToldTo(30, actions), ElementsAre("ended"));
  EXPECT_THAT(Only<OpenGeneration>(actions), IsEmpty());
}

// --- Stops ---

TEST(StateScriptsTest, AStopWaitsUntilAllHaveSavedAtOneStep) {
  ScriptDrive drive;
  drive.AllSay(PositionWord(1, 3));
  v1::Heartbeat heartbeat;
  heartbeat.mutable_progress()->set_step(10);
  heartbeat.mutable_progress()->set_total_steps(40);
  drive.Apply(HeartbeatReceived{20, heartbeat});
  auto actions = drive.Apply(StopRequested{"suspended"});
  EXPECT_THAT(Stopped(actions), IsEmpty());
  EXPECT_THAT(ToldTo(21, actions), ElementsAre("prepare 12"));
  drive.Say(20, AnswerWord(1, 12));
  drive.Say(21, AnswerWord(1, 13));
  actions = drive.Say(30, AnswerWord(1, 12));
  EXPECT_THAT(ToldTo(21, actions), ElementsAre("commit 13 stop"));
  EXPECT_THAT(Stopped(drive.Pass(seconds(20), {10, 20, 21, 30})), IsEmpty()) << "they save";
  EXPECT_THAT(Stopped(drive.Apply(StopRequested{"again"})), IsEmpty());
  drive.Say(20, EndedWord(1));
  drive.Say(21, EndedWord(1));
  actions = drive.Say(30, EndedWord(1));
  EXPECT_THAT(ToldTo(30, actions), IsEmpty()) << "they have not come to the end";
  EXPECT_THAT(Stopped(actions), SizeIs(4));
  for (const StreamId stream : {20, 21, 30, 10}) drive.Finish(stream, false, /*stopped=*/true);
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::STOPPED);
  EXPECT_EQ(drive.state.record().stop_reason, "suspended");
}

TEST(StateScriptsTest, AStopDoesNotWaitForScriptsThatDoNotSave) {
  ScriptDrive drive;
  drive.AllSay(PositionWord(1, 3));
  drive.Apply(StopRequested{"suspended"});
  EXPECT_THAT(Stopped(drive.Pass(milliseconds(4900), {10, 20, 21, 30})), IsEmpty());
  EXPECT_THAT(Stopped(drive.Pass(milliseconds(200), {10, 20, 21, 30})), SizeIs(4))
      << "a rank does not answer";

  ScriptDrive slow;
  slow.AllSay(PositionWord(1, 3));
  slow.Apply(StopRequested{"suspended"});
  slow.AllSay(AnswerWord(1, 5));
  EXPECT_THAT(Stopped(slow.Pass(seconds(34), {10, 20, 21, 30})), IsEmpty());
  EXPECT_THAT(Stopped(slow.Pass(seconds(2), {10, 20, 21, 30})), SizeIs(4))
      << "stopGraceSeconds is over";
}

TEST(StateScriptsTest, AScriptThatFailsWhileAllStopIsNotStartedAgain) {
  ScriptDrive drive;
  drive.AllSay(PositionWord(1, 3));
  drive.Apply(StopRequested{"suspended"});
  drive.AllSay(AnswerWord(1, 5));
  EXPECT_THAT(Stopped(drive.Fail(21, 1, 1, "disk full")), SizeIs(4));
  const auto actions = drive.Wait(seconds(3));
  EXPECT_THAT(Only<OpenGeneration>(actions), IsEmpty());
  EXPECT_EQ(drive.state.record().script_restarts, 0);
}

TEST(StateScriptsTest, AStopIsAtOnceWhereThereIsNothingToSave) {
  ScriptDrive before;
  before.Say(20, PositionWord(1, 3));
  EXPECT_THAT(Stopped(before.Apply(StopRequested{"suspended"})), SizeIs(4));

  api::HeteroTrainingJob job = MakeScriptJob();
  job.spec.training.checkpoint.reset();
  ScriptDrive without(job);
  without.AllSay(PositionWord(1, 3));
  EXPECT_THAT(Stopped(without.Apply(StopRequested{"suspended"})), SizeIs(4));

  ScriptDrive failing;
  failing.AllSay(PositionWord(1, 3));
  EXPECT_THAT(Stopped(failing.Apply(StopRequested{"took too long", "DeadlineExceeded"})),
              SizeIs(4));
}

TEST(StateScriptsTest, ARankThatLeavesHasAllSaveAndTheOthersWaitForItsPlace) {
  ScriptDrive drive;
  drive.AllSay(PositionWord(1, 3));
  EXPECT_THAT(ToldTo(20, drive.Say(21, StopWishWord(1))), ElementsAre("prepare 5"));
  EXPECT_THAT(ToldTo(20, drive.AllSay(AnswerWord(1, 5))), ElementsAre("commit 5 stop"));
  drive.Say(20, EndedWord(1));
  drive.Say(30, EndedWord(1));
  v1::Finished left;
  left.set_stopped(true);
  left.set_leaving(true);
  EXPECT_THAT(Stopped(drive.Apply(FinishedReceived{21, left})), IsEmpty());
  EXPECT_THAT(Only<OpenGeneration>(drive.Hello(41, MakeHello("gpu", 0, 1, 2))), SizeIs(1));
  EXPECT_EQ(drive.state.record().script_restarts, 0) << "nothing has failed";
}

TEST(StateScriptsTest, ARankThatLeavesBeforeAllHaveBegunHasNothingToSave) {
  ScriptDrive drive;
  drive.Say(21, PositionWord(1, 3));
  const auto actions = drive.Say(21, StopWishWord(1));
  EXPECT_THAT(ToldTo(20, actions), IsEmpty());
  EXPECT_THAT(Only<Note>(actions), IsEmpty()) << "nobody saves";
}

TEST(StateScriptsTest, EverySecondsIsByTheHeadsClock) {
  api::HeteroTrainingJob job = MakeScriptJob();
  job.spec.training.checkpoint->every_seconds = 10;
  ScriptDrive drive(job);
  drive.AllSay(PositionWord(1, 3));
  EXPECT_THAT(ToldTo(20, drive.Pass(milliseconds(9900), {10, 20, 21, 30})), IsEmpty());
  EXPECT_THAT(ToldTo(20, drive.Pass(milliseconds(200), {10, 20, 21, 30})),
              ElementsAre("prepare 5"));
}

TEST(StateScriptsTest, WithoutARuleEveryHalfHour) {
  ScriptDrive drive;
  drive.AllSay(PositionWord(1, 3));
  EXPECT_THAT(
      ToldTo(20, drive.Pass(std::chrono::minutes(30) - milliseconds(100), {10, 20, 21, 30})),
      IsEmpty());
  EXPECT_THAT(ToldTo(20, drive.Pass(milliseconds(200), {10, 20, 21, 30})),
              ElementsAre("prepare 5"));
}

}  // namespace
}  // namespace hetero::head
