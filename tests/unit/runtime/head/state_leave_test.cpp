// Trainers that leave because they were asked to, and generations that lead nowhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/head/state.h"
#include "tests/unit/runtime/head/job_fixture.h"

namespace hetero::head {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<Action> Leave(Drive& drive, StreamId stream) {
  v1::Finished finished;
  finished.set_stopped(true);
  finished.set_leaving(true);
  finished.set_message("left after step 7, as it was asked to");
  return drive.Apply(FinishedReceived{stream, finished});
}

// SIGTERM to one of the ranks was once the end of the job.
TEST(StateLeaveTest, ATrainerThatLeavesIsReplacedAndTheJobGoesOn) {
  Drive drive;
  drive.JoinAll();
  const auto actions = Leave(drive, 21);
  EXPECT_THAT(Stopped(actions), IsEmpty());
  EXPECT_THAT(Only<OpenGeneration>(actions), IsEmpty());
  drive.Apply(StreamClosed{21, true});
  drive.Pass(seconds(2), {10, 20, 30});
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::RUNNING);
  EXPECT_FALSE(drive.state.record().members.at({"gpu", 0, 1}).lost) << "the launcher would kill it";
  const auto opened = Only<OpenGeneration>(drive.Hello(41, MakeHello("gpu", 0, 1, 2)));
  ASSERT_THAT(opened, SizeIs(1));
  EXPECT_EQ(opened[0].generation.number(), 2);
  ASSERT_THAT(drive.state.record().faults, SizeIs(1));
  EXPECT_THAT(drive.state.record().faults[0].what, HasSubstr("gpu-0.1 left, as it was asked to"));
  EXPECT_TRUE(drive.state.record().faults[0].recovery_seconds.has_value());
}

TEST(StateLeaveTest, WhenAllTrainersHaveLeftTheJobIsStopped) {
  Drive drive;
  drive.JoinAll();
  EXPECT_THAT(Stopped(Leave(drive, 20)), IsEmpty());
  EXPECT_THAT(Stopped(Leave(drive, 21)), IsEmpty());
  EXPECT_FALSE(drive.state.ended());
  Leave(drive, 30);
  drive.Finish(10, true);
  ASSERT_TRUE(drive.state.ended());
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::STOPPED);
}

TEST(StateLeaveTest, BeforeTheFirstGenerationAnotherProcessIsWaitedForToo) {
  Drive drive;
  drive.Hello(10, MakeHello("cpu", 0));
  drive.Hello(20, MakeHello("gpu", 0, 0));
  drive.Hello(21, MakeHello("gpu", 0, 1));
  Leave(drive, 21);
  EXPECT_THAT(Only<OpenGeneration>(drive.Hello(30, MakeHello("big", 0))), IsEmpty());
  EXPECT_THAT(Only<OpenGeneration>(drive.Hello(41, MakeHello("gpu", 0, 1, 2))), SizeIs(1));
}

// A drained node had the head and all trainers. The next attempt's head was there before the old
// trainers were gone: they dialled its address, said that they had all left, and ended the job.
TEST(StateLeaveTest, WhoeverBelongsToAnEarlierAttemptHasNoSayInThisOne) {
  Drive drive;
  State next({.job = MakeJob(), .job_json = "{}", .attempt = {.number = 2}}, drive.Time());
  v1::Hello old = MakeHello("gpu", 0, 0);
  old.mutable_identity()->set_attempt(1);
  const auto refused = Only<Refuse>(next.Apply(HelloReceived{20, old}, drive.Time()));
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_TRUE(refused[0].refused.superseded());
  EXPECT_THAT(refused[0].refused.reason(), HasSubstr("belongs to attempt 1"));
  v1::Finished finished;
  finished.set_stopped(true);
  next.Apply(FinishedReceived{20, finished}, drive.Time());
  EXPECT_FALSE(next.ended());
  EXPECT_EQ(next.record().stop_reason, "");
  for (const int attempt : {0, 2}) {  // 0: started by hand
    v1::Hello hello = MakeHello("cpu", attempt == 0 ? 0 : 1);
    hello.mutable_identity()->set_attempt(attempt);
    EXPECT_THAT(Only<Refuse>(next.Apply(HelloReceived{30 + attempt, hello}, drive.Time())),
                IsEmpty());
  }
}

TEST(StateLeaveTest, OneWhomNobodyReplacesFailsTheJob) {
  Drive drive;
  drive.JoinAll();
  Leave(drive, 30);
  drive.Pass(seconds(61), {10, 20, 21});
  ASSERT_TRUE(drive.state.record().first_failure.has_value());
  EXPECT_EQ(drive.state.record().first_failure->member(), "big-0");
  EXPECT_THAT(drive.state.record().first_failure->message(),
              AllOf(HasSubstr("left, as it was asked to"),
                    HasSubstr("no new process took its place within spec.runPolicy.")));
}

TEST(StateLeaveTest, OneThatLeftIsNotMissedWhenTheOthersHaveFinished) {
  Drive drive;
  drive.JoinAll();
  Leave(drive, 21);
  for (const StreamId stream : {20, 30, 10}) drive.Finish(stream, true);
  ASSERT_TRUE(drive.state.ended());
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::SUCCEEDED);
}

// 35 generations in 40 seconds, and no end.
TEST(StateLeaveTest, GenerationsWithoutACompletedStepFollowedEachOtherWithoutEnd) {
  Drive drive;
  drive.JoinAll();
  for (int i = 0; i < 6000 && !drive.state.record().first_failure; ++i) {
    for (const StreamId stream : {10, 21, 30}) drive.Apply(HeartbeatReceived{stream, {}});
    HeartbeatReceived broken{.stream = 20};
    broken.heartbeat.set_broken_generation(drive.state.record().generation);
    broken.heartbeat.mutable_progress()->set_last_break(
        "rank 0, forming the process group: no route");
    drive.Apply(broken);
    drive.elapsed += milliseconds(100);
    drive.Apply(Tick{});
  }
  ASSERT_TRUE(drive.state.record().first_failure.has_value());
  EXPECT_EQ(drive.state.record().generation, 20);
  EXPECT_EQ(drive.state.record().first_failure->member(), "gpu-0.0");
  EXPECT_THAT(drive.state.record().first_failure->message(),
              AllOf(HasSubstr("20 generations in a row ended without a completed step"),
                    HasSubstr("no route")));
  // A network that is away for minutes does not end a job.
  EXPECT_GT(drive.elapsed, std::chrono::minutes(5));
}

}  // namespace
}  // namespace hetero::head
