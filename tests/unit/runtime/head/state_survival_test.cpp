// Trainers that are lost and replaced, and generations that follow each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/head/report_builder.h"
#include "runtime/head/state.h"
#include "runtime/job/stream_digest.h"
#include "tests/unit/runtime/head/job_fixture.h"

namespace hetero::head {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

v1::Hello WithGeneration(v1::Hello hello, int64_t generation) {
  hello.set_generation(generation);
  return hello;
}

HeartbeatReceived Broken(StreamId stream, int64_t generation) {
  HeartbeatReceived event{.stream = stream};
  event.heartbeat.set_broken_generation(generation);
  return event;
}

// Streams that are told that another rank left with the result.
std::vector<StreamId> ToldComplete(const std::vector<Action>& actions) {
  std::vector<StreamId> streams;
  for (const Send& send : Only<Send>(actions)) {
    if (send.message.has_command() && send.message.command().kind() == v1::Command::COMPLETE) {
      streams.push_back(send.stream);
    }
  }
  return streams;
}

bool Lost(const Drive& drive, const MemberKey& key) {
  return drive.state.record().members.at(key).lost;
}

TEST(StateSurvivalTest, ASilentTrainerIsLostAndItsReplacementOpensTheNextGeneration) {
  Drive drive;
  drive.JoinAll();
  drive.Pass(seconds(5), {10, 20, 30});
  EXPECT_FALSE(Lost(drive, {"gpu", 0, 1}));
  EXPECT_THAT(Stopped(drive.Pass(milliseconds(100), {10, 20, 30})), IsEmpty());
  EXPECT_TRUE(Lost(drive, {"gpu", 0, 1}));
  EXPECT_THAT(drive.state.record().faults.at(0).what, HasSubstr("silent for more than 5 s"));

  drive.Pass(seconds(2), {10, 20, 30});
  const auto opened = Only<OpenGeneration>(drive.Hello(41, MakeHello("gpu", 0, 1, 2)));
  ASSERT_THAT(opened, SizeIs(1));
  EXPECT_EQ(opened[0].generation.number(), 2);
  EXPECT_EQ(opened[0].generation.ranks_size(), 3);
  EXPECT_THAT(opened[0].trainers, UnorderedElementsAre(20, 30, 41));
  EXPECT_THAT(opened[0].workers, UnorderedElementsAre(10));
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::RUNNING);
  EXPECT_TRUE(drive.state.record().faults.at(0).recovery_seconds.has_value());
  EXPECT_EQ(drive.state.record().members.at({"gpu", 0, 1}).restarts, 1);
}

// Of a process that ends between two words the head knows the place only so well.
TEST(StateSurvivalTest, ANewProcessIsToldHowFarThoseBeforeItMayHaveCome) {
  Drive drive;
  const auto first = Only<OpenGeneration>(drive.JoinAll());
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_EQ(first[0].generation.reached_step(), 0);
  const auto tell = [&drive](StreamId stream, int64_t first_step, int64_t step) {
    v1::Heartbeat heartbeat;
    heartbeat.mutable_progress()->set_first_step(first_step);
    heartbeat.mutable_progress()->set_step(step);
    drive.Apply(HeartbeatReceived{stream, heartbeat});
  };
  tell(20, 0, 10);
  tell(30, 0, 12);
  tell(20, 0, 25);
  auto opened = Only<OpenGeneration>(drive.Hello(31, MakeHello("big", 0, 0, 2)));
  ASSERT_THAT(opened, SizeIs(1));
  EXPECT_EQ(opened[0].generation.reached_step(), 40);
  // What it took over from the others it did not do.
  tell(31, 1000, 1003);
  opened = Only<OpenGeneration>(drive.Hello(32, MakeHello("big", 0, 0, 3)));
  ASSERT_THAT(opened, SizeIs(1));
  EXPECT_EQ(opened[0].generation.reached_step(), 1006);
}

TEST(StateSurvivalTest, ANewProcessReplacesOneThatWasNeverMissed) {
  Drive drive;
  drive.JoinAll();
  const auto actions = drive.Hello(31, MakeHello("big", 0, 0, 2));
  EXPECT_THAT(Only<Refuse>(actions), SizeIs(1));
  ASSERT_THAT(Only<OpenGeneration>(actions), SizeIs(1));
  EXPECT_EQ(drive.state.record().generation, 2);
}

TEST(StateSurvivalTest, TheNextGenerationWaitsForAllWhoAreMissing) {
  Drive drive;
  drive.JoinAll();
  drive.Apply(StreamClosed{21, true});
  drive.Apply(StreamClosed{30, true});
  EXPECT_THAT(Only<OpenGeneration>(drive.Hello(41, MakeHello("gpu", 0, 1, 2))), IsEmpty());
  EXPECT_THAT(Only<OpenGeneration>(drive.Hello(31, MakeHello("big", 0, 0, 2))), SizeIs(1));
  EXPECT_EQ(drive.state.record().generation, 2);
}

// It would look for ranks that have died.
TEST(StateSurvivalTest, ANewProcessIsNotToldOfTheGenerationBeforeIt) {
  Drive drive;
  drive.JoinAll();
  drive.Apply(StreamClosed{21, true});
  drive.Apply(StreamClosed{30, true});
  const auto sent = Only<Send>(drive.Hello(41, MakeHello("gpu", 0, 1, 2)));
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_TRUE(sent[0].message.has_welcome());
}

TEST(StateSurvivalTest, ATrainerWhoseProcessIsGoneIsLostAtOnce) {
  Drive drive;
  drive.JoinAll();
  drive.Apply(StreamClosed{30, true});
  EXPECT_TRUE(Lost(drive, {"big", 0, 0}));
  EXPECT_FALSE(drive.state.record().first_failure.has_value());
}

TEST(StateSurvivalTest, ABrokenStreamHasMemberTimeoutToComeBack) {
  Drive drive;
  drive.JoinAll();
  drive.Apply(StreamClosed{30, false});
  drive.Pass(seconds(4), {10, 20, 21});
  EXPECT_THAT(Only<OpenGeneration>(drive.Hello(31, WithGeneration(MakeHello("big", 0), 1))),
              IsEmpty());
  drive.Apply(StreamClosed{31, false});
  drive.Pass(milliseconds(5100), {10, 20, 21});
  EXPECT_TRUE(Lost(drive, {"big", 0, 0}));
  EXPECT_THAT(drive.state.record().faults.at(0).what, HasSubstr("not back within 5 s"));
  // Back after all, as the same process: nothing has to change.
  EXPECT_THAT(Only<OpenGeneration>(drive.Hello(32, WithGeneration(MakeHello("big", 0), 1))),
              IsEmpty());
  EXPECT_FALSE(Lost(drive, {"big", 0, 0}));
}

TEST(StateSurvivalTest, ALostTrainerWhomNobodyReplacesFailsTheJob) {
  Drive drive;
  drive.JoinAll();
  drive.Apply(StreamClosed{30, true});
  drive.Pass(seconds(60), {10, 20, 21});
  EXPECT_FALSE(drive.state.record().first_failure.has_value());
  drive.Pass(milliseconds(200), {10, 20, 21});
  ASSERT_TRUE(drive.state.record().first_failure.has_value());
  EXPECT_EQ(drive.state.record().first_failure->member(), "big-0");
  EXPECT_THAT(drive.state.record().first_failure->message(),
              HasSubstr("no new process took its place within spec.runPolicy."
                        "startupDeadlineSeconds (60 s)"));
}

TEST(StateSurvivalTest, ABrokenGroupOfLivingProcessesGetsANewGenerationAfterAMoment) {
  Drive drive;
  drive.JoinAll();
  EXPECT_THAT(Only<OpenGeneration>(drive.Apply(Broken(20, 1))), IsEmpty());
  size_t opened = 0;
  const auto tell = [&](const Event& event) {
    opened += Only<OpenGeneration>(drive.Apply(event)).size();
  };
  for (int i = 0; i < 20 && opened == 0; ++i) {
    drive.elapsed += milliseconds(100);
    for (const StreamId stream : {10, 21, 30}) tell(HeartbeatReceived{stream, {}});
    tell(Broken(20, 1));
    tell(Tick{});
  }
  ASSERT_EQ(opened, 1u);
  EXPECT_EQ(drive.state.record().generation, 2);
  // The same word, heard again, is about the generation before.
  EXPECT_THAT(Only<OpenGeneration>(drive.Apply(Broken(20, 1))), IsEmpty());
  drive.Pass(seconds(2), {10, 20, 21, 30});
  EXPECT_EQ(drive.state.record().generation, 2);
}

TEST(StateSurvivalTest, WhoeverCreatesTheProcessesNeedNotLetTheHeadWait) {
  Drive drive;
  drive.JoinAll();
  drive.Apply(ProcessEnded{.member = "big-0", .incarnation = 1, .message = "killed by SIGKILL"});
  EXPECT_TRUE(Lost(drive, {"big", 0, 0}));
  EXPECT_THAT(drive.state.record().faults.at(0).what, HasSubstr("killed by SIGKILL"));
  ASSERT_THAT(Only<OpenGeneration>(drive.Hello(31, MakeHello("big", 0, 0, 2))), SizeIs(1));
  // A late word about the process before is none about this one.
  drive.Apply(ProcessEnded{.member = "big-0", .incarnation = 1, .message = "killed by SIGKILL"});
  EXPECT_FALSE(Lost(drive, {"big", 0, 0}));
  // Without an incarnation the connection decides.
  drive.Apply(ProcessEnded{.member = "big-0", .message = "killed by SIGKILL"});
  EXPECT_FALSE(Lost(drive, {"big", 0, 0}));
}

TEST(StateSurvivalTest, OnceOneRankHasLeftWithTheResultNobodyBeginsAnew) {
  Drive drive;
  drive.JoinAll();
  drive.Apply(StreamClosed{30, true});
  const auto actions = drive.Finish(20, true);
  EXPECT_THAT(ToldComplete(actions), ElementsAre(21));
  EXPECT_THAT(Stopped(drive.Hello(31, MakeHello("big", 0, 0, 2))), ElementsAre(31));
  drive.Finish(21, true);
  drive.Finish(31, true, true);
  drive.Finish(10, true, true);
  EXPECT_TRUE(drive.state.ended());
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::SUCCEEDED);
  EXPECT_EQ(drive.state.record().generation, 1);
}

TEST(StateSurvivalTest, ARestartedHeadOpensNothingBeforeItKnowsAllGenerations) {
  Drive drive;
  drive.Hello(10, MakeHello("cpu", 0));
  drive.Hello(20, WithGeneration(MakeHello("gpu", 0, 0), 3));
  // A new process among them, and one that had heard of a generation which the others had not.
  drive.Hello(21, MakeHello("gpu", 0, 1, 2));
  EXPECT_EQ(drive.state.record().generation, 0);
  const auto opened = Only<OpenGeneration>(drive.Hello(30, WithGeneration(MakeHello("big", 0), 4)));
  ASSERT_THAT(opened, SizeIs(1));
  EXPECT_EQ(opened[0].generation.number(), 5);
}

v1::Finished LastWord(int64_t step) {
  v1::Finished word;
  word.set_ok(true);
  word.mutable_last()->mutable_progress()->set_step(step);
  return word;
}

TEST(StateSurvivalTest, ARestartedHeadHearsOfThoseWhoHadLeft) {
  Drive drive;
  drive.Hello(10, MakeHello("cpu", 0));
  drive.Hello(20, WithGeneration(MakeHello("gpu", 0, 0), 3));
  drive.Hello(21, WithGeneration(MakeHello("gpu", 0, 1), 3));
  const auto actions = drive.Apply(
      ProcessEnded{.member = "big-0", .ok = true, .incarnation = 1, .last_word = LastWord(40)});
  EXPECT_THAT(ToldComplete(actions), UnorderedElementsAre(20, 21));
  drive.Finish(20, true);
  drive.Finish(21, true);
  drive.Finish(10, true, true);
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::SUCCEEDED);
}

// The head before froze before it had written down that the generation opened.
TEST(StateSurvivalTest, LastWordsTellWhichGenerationTrained) {
  Drive drive;
  drive.Hello(10, MakeHello("cpu", 0));
  v1::Finished word = LastWord(40);
  word.set_generation(3);
  for (const char* member : {"gpu-0.0", "gpu-0.1", "big-0"}) {
    drive.Apply(ProcessEnded{.member = member, .ok = true, .incarnation = 1, .last_word = word});
  }
  EXPECT_EQ(drive.state.record().past.generation, 3);
}

// A rank and the head were killed when all had said their last word: the rank's successor, which
// had never trained, failed the job.
TEST(StateSurvivalTest, ANewProcessIsNotNeededWhenARestartedHeadHearsThatTheJobIsDone) {
  Drive drive;
  drive.Hello(10, MakeHello("cpu", 0));
  drive.Hello(20, WithGeneration(MakeHello("gpu", 0, 0), 3));
  drive.Hello(21, MakeHello("gpu", 0, 1, 2));
  const auto actions = drive.Apply(
      ProcessEnded{.member = "big-0", .ok = true, .incarnation = 1, .last_word = LastWord(40)});
  EXPECT_THAT(ToldComplete(actions), UnorderedElementsAre(20));
  drive.Finish(20, true);
  drive.Finish(10, true, true);
  drive.Pass(std::chrono::seconds(3), {21});
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::SUCCEEDED);
}

// A frozen head was replaced when two ranks had left with the result. The successor of a third,
// which was killed in that moment, was let go, ended with the code of a stop, and failed the job.
TEST(StateSurvivalTest, TheEndOfOneThatWasLetGoIsNoFailure) {
  Drive drive;
  drive.Hello(10, MakeHello("cpu", 0));
  drive.Apply(
      ProcessEnded{.member = "big-0", .ok = true, .incarnation = 1, .last_word = LastWord(40)});
  drive.Hello(21, MakeHello("gpu", 0, 1, 2));
  drive.Finish(21, false, true);
  drive.Apply(FailureReported{.member = "gpu-0.1", .message = "exit code 130"});
  EXPECT_NE(drive.state.record().state, v1::JobStatus::FAILED);
  drive.Apply(
      ProcessEnded{.member = "gpu-0.0", .ok = true, .incarnation = 1, .last_word = LastWord(40)});
  drive.Finish(10, true, true);
  drive.Pass(std::chrono::seconds(3), {21});
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::SUCCEEDED);
}

// Rank 0 was killed under a frozen head when it had trained to the end: the report said nothing.
TEST(StateSurvivalTest, AnotherRankTellsWhatRank0CannotAnyMore) {
  Drive drive;
  drive.Hello(10, MakeHello("cpu", 0));
  v1::Finished word = LastWord(40);
  word.mutable_last()->mutable_progress()->set_digest_covers_job(true);
  word.mutable_last()->mutable_progress()->set_samples_consumed(640);
  drive.Apply(ProcessEnded{.member = "big-0", .ok = true, .incarnation = 1, .last_word = word});
  drive.Hello(20, MakeHello("gpu", 0, 0, 2));
  drive.Hello(21, MakeHello("gpu", 0, 1, 2));
  drive.Finish(20, false, true);
  drive.Finish(21, false, true);
  drive.Finish(10, true, true);
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::SUCCEEDED);
  EXPECT_EQ(JobProgress(drive.state.record()).step(), 40);
  EXPECT_EQ(JobProgress(drive.state.record()).samples_consumed(), 640);
}

// Rank 0 froze when it had written the weights, before its last word. The others had left with the
// result, so that the job succeeded, after 18 of 40 steps and with the digest of those.
TEST(StateSurvivalTest, ARankThatIsNotMissedAtTheEndTellsNothingOfTheEnd) {
  for (const bool covers_job : {true, false}) {
    Drive drive;
    drive.JoinAll();
    const auto word = [&](int64_t step) {
      v1::Finished finished = LastWord(step);
      v1::Progress* progress = finished.mutable_last()->mutable_progress();
      progress->set_digest_covers_job(covers_job);
      progress->set_samples_consumed(16 * step);
      progress->set_digest_low(static_cast<uint64_t>(step));
      return finished;
    };
    drive.Apply(HeartbeatReceived{20, word(18).last()});
    drive.Apply(FinishedReceived{21, word(40)});
    drive.Apply(FinishedReceived{30, word(40)});
    drive.Pass(seconds(7), {10});
    drive.Finish(10, true, true);
    ASSERT_EQ(drive.state.record().state, v1::JobStatus::SUCCEEDED);
    const insight::Report report = BuildReport(drive.state.record(), drive.Time());
    if (covers_job) {
      EXPECT_EQ(report.steps, 40);
      EXPECT_EQ(report.samples_consumed, 16 * 40);
      EXPECT_EQ(report.stream_digest, job::StreamDigest(0, 40).ToHex());
    } else {
      EXPECT_EQ(report.stream_digest, std::nullopt);
      EXPECT_EQ(report.digest_problem, "gpu-0.0 ended before it had told of its last steps");
    }
  }
}

// An exit report once made a success of a job that nobody had joined.
TEST(StateSurvivalTest, AnExitCodeOfZeroAloneIsNoSuccess) {
  Drive drive;
  for (const char* member : {"gpu-0.0", "gpu-0.1", "big-0"}) {
    drive.Apply(ProcessEnded{.member = member, .ok = true, .incarnation = 1});
    drive.Apply(ProcessEnded{.member = member, .ok = true});
  }
  EXPECT_FALSE(drive.state.ended());
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::WAITING);
  drive.JoinAll();
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::RUNNING);
  drive.Apply(StreamClosed{30, false});
  drive.Apply(ProcessEnded{.member = "big-0", .ok = true, .incarnation = 1, .message = "exit 0"});
  EXPECT_TRUE(Lost(drive, {"big", 0, 0}));
  EXPECT_THAT(drive.state.record().faults.at(0).what, HasSubstr("without a last word"));
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::RUNNING);
}

TEST(StateSurvivalTest, TheLastWordOfOneThatStoppedOrFailedIsNoSuccess) {
  Drive drive;
  v1::Finished stopped = LastWord(3);
  stopped.set_stopped(true);
  v1::Finished failed = LastWord(3);
  failed.set_ok(false);
  for (const char* member : {"gpu-0.0", "gpu-0.1", "big-0"}) {
    drive.Apply(ProcessEnded{.member = member, .ok = true, .incarnation = 1, .last_word = stopped});
    drive.Apply(ProcessEnded{.member = member, .ok = true, .incarnation = 1, .last_word = failed});
  }
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::WAITING);
}

// All had left when the head died: the new one knows the result from their last words.
TEST(StateSurvivalTest, LastWordsOfAllRanksAreTheResult) {
  Drive drive;
  for (const char* member : {"gpu-0.0", "gpu-0.1", "big-0"}) {
    EXPECT_FALSE(drive.state.ended());
    drive.Apply(
        ProcessEnded{.member = member, .ok = true, .incarnation = 1, .last_word = LastWord(40)});
  }
  EXPECT_TRUE(drive.state.ended());
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::SUCCEEDED);
  EXPECT_EQ(JobProgress(drive.state.record()).step(), 40);
}

}  // namespace
}  // namespace hetero::head
