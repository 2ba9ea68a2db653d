#include "runtime/head/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/runtime/head/job_fixture.h"

namespace hetero::head {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST(StateTest, GenerationOpensWithRanksInManifestOrderOnceAllRequiredMembersHaveJoined) {
  Drive drive;
  EXPECT_THAT(Only<OpenGeneration>(drive.Hello(30, MakeHello("big", 0))), IsEmpty());
  EXPECT_THAT(Only<OpenGeneration>(drive.Hello(21, MakeHello("gpu", 0, 1))), IsEmpty());
  EXPECT_THAT(Only<OpenGeneration>(drive.Hello(20, MakeHello("gpu", 0, 0))), IsEmpty());
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::WAITING);

  const auto opened = Only<OpenGeneration>(drive.Hello(11, MakeHello("cpu", 1)));
  ASSERT_THAT(opened, SizeIs(1));
  EXPECT_THAT(opened[0].trainers, UnorderedElementsAre(20, 21, 30));
  EXPECT_THAT(opened[0].workers, UnorderedElementsAre(11));
  const v1::Generation& generation = opened[0].generation;
  EXPECT_EQ(generation.number(), 1);
  std::vector<std::string> addresses;
  for (const v1::Rank& rank : generation.ranks()) addresses.push_back(rank.address());
  EXPECT_THAT(addresses, ElementsAre("gpu0.0", "gpu0.1", "big0.0"));
  ASSERT_EQ(generation.cpu_workers_size(), 1);
  EXPECT_EQ(generation.cpu_workers(0).index(), 1);
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::RUNNING);
}

TEST(StateTest, WelcomeIsTheFirstAnswerAndCarriesTheJob) {
  Drive drive;
  const auto sent = Only<Send>(drive.Hello(1, MakeHello("cpu", 0)));
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].message.welcome().job_json(), "{}");
  EXPECT_EQ(sent[0].message.welcome().member_timeout_seconds(), 5);
}

TEST(StateTest, LateCpuWorkerChangesTheRosterOfTheTrainers) {
  Drive drive;
  drive.JoinAll();
  const auto actions = drive.Hello(11, MakeHello("cpu", 1));
  EXPECT_EQ(LastRoster(actions), "cpu-0 cpu-1");
  EXPECT_THAT(Only<BroadcastRoster>(actions)[0].streams, UnorderedElementsAre(20, 21, 30));
}

TEST(StateTest, CpuWorkerLeavesTheRosterAtOnceWhenItsProcessIsGone) {
  Drive drive;
  drive.JoinAll();
  EXPECT_EQ(LastRoster(drive.Apply(StreamClosed{10, true})), "");
  ASSERT_THAT(drive.state.record().faults, SizeIs(1));
  EXPECT_THAT(drive.state.record().faults[0].what, HasSubstr("cpu-0 was lost"));

  drive.Pass(seconds(2), {20, 21, 30});
  const auto actions = drive.Hello(12, MakeHello("cpu", 0, 0, 2));
  EXPECT_EQ(LastRoster(actions), "cpu-0");
  ASSERT_THAT(drive.state.record().faults, SizeIs(1));
  EXPECT_NEAR(*drive.state.record().faults[0].recovery_seconds, 2, 1e-9);
  EXPECT_EQ(drive.state.record().members.at({"cpu", 0, 0}).restarts, 1);
}

TEST(StateTest, BrokenStreamOfACpuWorkerHasAShortGrace) {
  Drive drive;
  drive.JoinAll();
  EXPECT_EQ(LastRoster(drive.Apply(StreamClosed{10, false})), "none");
  EXPECT_EQ(LastRoster(drive.Pass(milliseconds(500), {20, 21, 30})), "none");
  EXPECT_EQ(LastRoster(drive.Pass(milliseconds(200), {20, 21, 30})), "");
}

TEST(StateTest, RedialWithinTheGraceIsNoFault) {
  Drive drive;
  drive.JoinAll();
  drive.Apply(StreamClosed{10, false});
  drive.Pass(milliseconds(300), {20, 21, 30});
  EXPECT_EQ(LastRoster(drive.Hello(12, MakeHello("cpu", 0))), "none");
  drive.Pass(seconds(2), {12, 20, 21, 30});
  EXPECT_THAT(drive.state.record().faults, IsEmpty());
}

TEST(StateTest, SilentCpuWorkerLeavesAndComesBackWithItsNextHeartbeat) {
  Drive drive;
  drive.JoinAll();
  EXPECT_EQ(LastRoster(drive.Pass(seconds(5), {20, 21, 30})), "none");
  EXPECT_EQ(LastRoster(drive.Pass(milliseconds(100), {20, 21, 30})), "");
  EXPECT_EQ(LastRoster(drive.Apply(HeartbeatReceived{10, {}})), "cpu-0");
  EXPECT_TRUE(drive.state.record().faults.at(0).recovery_seconds.has_value());
}

TEST(StateTest, APauseOfTheHeadItselfIsNotTheMembersSilence) {
  Drive drive;
  drive.JoinAll();
  drive.Pass(seconds(1), {10, 20, 21, 30});
  drive.elapsed += seconds(60);
  const auto actions = drive.Apply(Tick{});
  EXPECT_EQ(LastRoster(actions), "none");
  EXPECT_FALSE(drive.state.record().first_failure.has_value());
}

TEST(StateTest, JobSucceedsWhenAllRanksHaveFinishedAndThenStopsTheCpuWorkers) {
  Drive drive;
  drive.JoinAll();
  const auto first = Only<Send>(drive.Finish(20, true));
  ASSERT_THAT(first, SizeIs(3));
  int acknowledged = 0;
  for (const Send& send : first) {
    // The others hear that they may leave too.
    if (send.message.has_finish_ack()) {
      EXPECT_EQ(send.stream, 20);
      ++acknowledged;
    } else {
      EXPECT_EQ(send.message.command().kind(), v1::Command::COMPLETE);
      EXPECT_THAT(send.stream, AnyOf(21, 30));
    }
  }
  EXPECT_EQ(acknowledged, 1);
  drive.Finish(21, true);
  const auto last = drive.Finish(30, true);
  EXPECT_THAT(Stopped(last), ElementsAre(10));
  EXPECT_THAT(Only<EndJob>(last), IsEmpty());
  EXPECT_THAT(Only<EndJob>(drive.Finish(10, true, true)), SizeIs(1));
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::SUCCEEDED);
}

TEST(StateTest, RepeatedLastWordIsAcknowledgedAgain) {
  Drive drive;
  drive.JoinAll();
  drive.Finish(20, true);
  drive.Apply(StreamClosed{20, false});
  drive.Hello(22, MakeHello("gpu", 0, 0));
  const auto sent = Only<Send>(drive.Finish(22, true));
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_TRUE(sent[0].message.has_finish_ack());
}

TEST(StateTest, HeartbeatAfterTheLastWordDoesNotTakeTheTotalsBack) {
  Drive drive;
  drive.JoinAll();
  v1::Finished finished;
  finished.set_ok(true);
  finished.mutable_last()->mutable_progress()->set_digest_low(9);
  finished.mutable_last()->mutable_counters()->set_samples(32);
  drive.Apply(FinishedReceived{20, finished});
  v1::Heartbeat older;
  older.mutable_progress()->set_digest_low(5);
  older.mutable_counters()->set_samples(16);
  older.add_losses()->set_step(3);
  drive.Apply(HeartbeatReceived{20, older});
  const MemberRecord& member = drive.state.record().members.at({"gpu", 0, 0});
  EXPECT_EQ(member.progress.digest_low(), 9u);
  EXPECT_EQ(member.counters.samples(), 32);
  EXPECT_EQ(drive.state.record().loss_curve.points().back().step(), 3);  // only that one had it
}

TEST(StateTest, StopIsToldToAllAndEndsWithTheirLastWords) {
  Drive drive;
  drive.JoinAll();
  EXPECT_THAT(Stopped(drive.Apply(StopRequested{"Ctrl-C"})), UnorderedElementsAre(10, 20, 21, 30));
  for (const StreamId stream : {10, 20, 21}) drive.Finish(stream, true, true);
  EXPECT_FALSE(drive.state.ended());
  EXPECT_THAT(Only<EndJob>(drive.Finish(30, true, true)), SizeIs(1));
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::STOPPED);
  EXPECT_EQ(drive.state.record().stop_reason, "Ctrl-C");
}

TEST(StateTest, StopDoesNotWaitLongerThanTheGrace) {
  Drive drive;
  drive.JoinAll();
  drive.Apply(StopRequested{"Ctrl-C"});
  EXPECT_THAT(Only<EndJob>(drive.Pass(milliseconds(1900))), IsEmpty());
  EXPECT_THAT(Only<EndJob>(drive.Pass(milliseconds(200))), SizeIs(1));
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::STOPPED);
}

TEST(StateTest, StopBeforeAnybodyJoinedEndsAtOnce) {
  Drive drive;
  EXPECT_THAT(Only<EndJob>(drive.Apply(StopRequested{"Ctrl-C"})), SizeIs(1));
}

TEST(StateTest, WhoJoinsAnEndingJobIsToldToStop) {
  Drive drive;
  drive.JoinAll();
  drive.Apply(StopRequested{"Ctrl-C"});
  EXPECT_THAT(Stopped(drive.Hello(11, MakeHello("cpu", 1))), ElementsAre(11));
}

TEST(StateTest, ARestartedHeadTakesOverTheGenerationItsMembersWorkIn) {
  Drive drive;
  std::vector<Action> last;
  for (const auto& [role, local] : {std::pair{"gpu", 0}, {"gpu", 1}, {"big", 0}}) {
    v1::Hello hello = MakeHello(role, 0, local);
    hello.set_generation(4);
    last = drive.Hello(50 + drive.state.record().members.size(), hello);
  }
  EXPECT_THAT(Only<OpenGeneration>(last), IsEmpty());
  EXPECT_EQ(drive.state.record().generation, 4);
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::RUNNING);
  EXPECT_EQ(LastRoster(drive.Hello(10, MakeHello("cpu", 0))), "cpu-0");
}

}  // namespace
}  // namespace hetero::head
