// Machines that are about to go: what the head has done about it, and what it tells of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/head/history_builder.h"
#include "runtime/head/report_builder.h"
#include "runtime/head/state.h"
#include "runtime/head/status_builder.h"
#include "tests/unit/runtime/head/job_fixture.h"
#include "tests/unit/runtime/head/script_job.h"

namespace hetero::head {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kTaint[] = "node a: taint karpenter.sh/disrupted";

v1::Notice NoticeOf(const std::string& role, int index, bool may_stay = false) {
  v1::Notice notice;
  notice.set_role(role);
  notice.set_index(index);
  notice.set_incarnation(1);
  notice.set_sign(kTaint);
  notice.set_may_stay(may_stay);
  return notice;
}

NoticesReceived These(const std::vector<v1::Notice>& notices) {
  NoticesReceived received;
  for (const v1::Notice& notice : notices) *received.notices.add_notices() = notice;
  received.notices.set_fingerprint(notices.size());
  return received;
}

api::HeteroTrainingJob SavingJob() {
  api::HeteroTrainingJob job = MakeJob();
  job.spec.training.checkpoint = api::Checkpoint{.uri = "file:///ck"};
  return job;
}

// Streams that are told to write a checkpoint.
std::vector<StreamId> ToldToSave(const std::vector<Action>& actions) {
  std::vector<StreamId> streams;
  for (const Send& send : Only<Send>(actions)) {
    if (send.message.command().kind() == v1::Command::CHECKPOINT) streams.push_back(send.stream);
  }
  return streams;
}

// "cpu-0 leaves cpu-1" of the last roster sent.
std::string LastLeavers(const std::vector<Action>& actions) {
  std::string text;
  for (const BroadcastRoster& sent : Only<BroadcastRoster>(actions)) {
    text.clear();
    for (const v1::CpuWorker& worker : sent.roster.cpu_workers()) {
      if (!text.empty()) text += " ";
      text += worker.role() + "-" + std::to_string(worker.index());
      if (worker.leaving()) text += " leaves";
    }
  }
  return text;
}

std::vector<Action> Tell(Drive& drive, StreamId stream, int64_t step, int64_t saved = 0,
                         int64_t first = 0) {
  HeartbeatReceived told{.stream = stream};
  told.heartbeat.mutable_progress()->set_step(step);
  told.heartbeat.mutable_progress()->set_first_step(first);
  told.heartbeat.mutable_progress()->set_checkpoint_step(saved);
  return drive.Apply(told);
}

TEST(NoticesTest, TheTrainingIsSavedAndTheWorkerGetsNoNewWork) {
  Drive drive(SavingJob());
  drive.JoinAll();
  drive.Hello(11, MakeHello("cpu", 1));
  Tell(drive, 20, 7, 5);
  const auto actions = drive.Apply(These({NoticeOf("cpu", 0)}));
  EXPECT_THAT(ToldToSave(actions), ElementsAre(20)) << "rank 0 alone";
  EXPECT_EQ(LastLeavers(actions), "cpu-0 leaves cpu-1");
  drive.Pass(milliseconds(300), {10, 11, 20, 21, 30});
  Tell(drive, 20, 9, 8);
  const insight::Report report = BuildReport(drive.state.record(), drive.Time());
  ASSERT_THAT(report.disruptions, SizeIs(1));
  EXPECT_EQ(report.disruptions[0].member, "cpu-0");
  EXPECT_EQ(report.disruptions[0].sign, kTaint);
  EXPECT_EQ(report.disruptions[0].checkpoint_step, 8);
  EXPECT_DOUBLE_EQ(report.disruptions[0].checkpoint_seconds.value_or(0), 0.3);
}

TEST(NoticesTest, ACordonedNodesWorkerWorksOn) {
  Drive drive(SavingJob());
  drive.JoinAll();
  const auto actions = drive.Apply(These({NoticeOf("cpu", 0, /*may_stay=*/true)}));
  EXPECT_THAT(ToldToSave(actions), ElementsAre(20));
  EXPECT_EQ(LastLeavers(actions), "") << "the roster is what it was";
}

TEST(NoticesTest, ToldAgainItIsTheSameAndTakenBackItIsOver) {
  Drive drive(SavingJob());
  drive.JoinAll();
  drive.Apply(These({NoticeOf("cpu", 0)}));
  const auto again = drive.Apply(These({NoticeOf("cpu", 0)}));
  EXPECT_THAT(ToldToSave(again), IsEmpty());
  EXPECT_THAT(Only<BroadcastRoster>(again), IsEmpty());
  EXPECT_EQ(LastLeavers(drive.Apply(These({}))), "cpu-0");
  EXPECT_THAT(drive.state.record().disruptions, SizeIs(1));
  EXPECT_EQ(BuildStatus(drive.state.record(), drive.state.plan()).notices_fingerprint(), 0u);
}

// A taint that goes and comes again hours later, for the same process.
TEST(NoticesTest, WhatWasTakenBackAndComesAgainIsSavedAgain) {
  Drive drive(SavingJob());
  drive.JoinAll();
  Tell(drive, 20, 3);
  drive.Apply(These({NoticeOf("cpu", 0)}));
  Tell(drive, 20, 4, 4);
  drive.Apply(These({}));
  EXPECT_THAT(ToldToSave(drive.Apply(These({NoticeOf("cpu", 0)}))), ElementsAre(20));
  EXPECT_THAT(drive.state.record().disruptions, SizeIs(2));
}

// More than the report keeps: each change of the set was once a checkpoint more.
TEST(NoticesTest, OfAHundredOfThemEachIsNewsOnce) {
  api::HeteroTrainingJob job = SavingJob();
  job.spec.roles[1].replicas = job.spec.roles[1].max_replicas.emplace(100);
  Drive drive(job);
  drive.JoinAll();
  Tell(drive, 20, 3);
  std::vector<v1::Notice> all;
  for (int i = 0; i < 100; ++i) all.push_back(NoticeOf("cpu", i));
  EXPECT_THAT(ToldToSave(drive.Apply(These(all))), ElementsAre(20));
  Tell(drive, 20, 4, 4);
  all.erase(all.begin());
  EXPECT_THAT(ToldToSave(drive.Apply(These(all))), IsEmpty());
  EXPECT_THAT(drive.state.record().disruptions, SizeIs(Notices::kMostDisruptions));
}

TEST(NoticesTest, ACheckpointThatCouldNotBeWrittenIsAskedForAgain) {
  Drive drive(SavingJob());
  drive.JoinAll();
  Tell(drive, 20, 3);
  drive.Apply(These({NoticeOf("cpu", 0)}));
  HeartbeatReceived told{.stream = 20};
  told.heartbeat.mutable_progress()->set_step(4);
  told.heartbeat.mutable_progress()->set_checkpoint_problem("no space left");
  EXPECT_THAT(ToldToSave(drive.Apply(told)), IsEmpty()) << "not at once";
  drive.elapsed += Notices::kAskAgain;
  drive.Apply(told);
  EXPECT_THAT(ToldToSave(drive.Apply(Tick{})), ElementsAre(20));
}

TEST(NoticesTest, TheCheckpointOfAStopCountsToo) {
  Drive drive(SavingJob());
  drive.JoinAll();
  Tell(drive, 20, 3);
  drive.Apply(These({NoticeOf("gpu", 0)}));
  drive.Apply(StopRequested{.reason = "suspended", .failure = ""});
  v1::Finished finished;
  finished.set_stopped(true);
  finished.mutable_last()->mutable_progress()->set_step(4);
  finished.mutable_last()->mutable_progress()->set_checkpoint_step(4);
  drive.Apply(FinishedReceived{20, finished});
  EXPECT_EQ(drive.state.record().disruptions[0].checkpoint_step, 4);
}

// Its pod was replaced, perhaps on the same node, which stays after all.
TEST(NoticesTest, ANoticeIsForTheProcessThatItNames) {
  Drive drive(SavingJob());
  drive.JoinAll();
  drive.Apply(These({NoticeOf("cpu", 0)}));
  drive.Apply(StreamClosed{10, true});
  EXPECT_EQ(LastLeavers(drive.Hello(11, MakeHello("cpu", 0, 0, 2))), "cpu-0");
}

TEST(NoticesTest, WhatWasWrittenBeforeTheNoticeDoesNotCount) {
  Drive drive(SavingJob());
  drive.JoinAll();
  Tell(drive, 20, 10, 4);
  drive.Apply(These({NoticeOf("big", 0)}));
  Tell(drive, 20, 11, 8);  // was under way
  EXPECT_FALSE(drive.state.record().disruptions[0].checkpoint_seconds.has_value());
  Tell(drive, 20, 12, 11);
  EXPECT_TRUE(drive.state.record().disruptions[0].checkpoint_seconds.has_value());
}

TEST(NoticesTest, ANewProcessOfRankZeroIsAskedAgain) {
  Drive drive(SavingJob());
  drive.JoinAll();
  Tell(drive, 20, 3);
  drive.Apply(These({NoticeOf("gpu", 0)}));
  drive.Apply(StreamClosed{20, true});
  EXPECT_THAT(ToldToSave(drive.Hello(40, MakeHello("gpu", 0, 0, 2))), ElementsAre(40));
}

TEST(NoticesTest, BeforeTheTrainingBeginsAndWithoutCheckpointsNobodyIsAsked) {
  Drive early(SavingJob());
  early.Hello(20, MakeHello("gpu", 0, 0));
  EXPECT_THAT(ToldToSave(early.Apply(These({NoticeOf("gpu", 0)}))), IsEmpty());
  Drive drive;
  drive.JoinAll();
  EXPECT_THAT(ToldToSave(drive.Apply(These({NoticeOf("gpu", 0)}))), IsEmpty());
  EXPECT_THAT(drive.state.record().disruptions, SizeIs(1));
}

// A user asked for more CPU workers than the manifest that this head has read.
TEST(NoticesTest, ACpuWorkerBeyondTheManifestMayBeKnownToGoBeforeItJoins) {
  Drive drive(SavingJob());
  drive.JoinAll();
  drive.Apply(These({NoticeOf("cpu", 7)}));
  EXPECT_EQ(LastLeavers(drive.Hello(17, MakeHello("cpu", 7))), "cpu-0 cpu-7 leaves");
}

TEST(NoticesTest, MembersThatTheJobDoesNotHaveArePassedOver) {
  Drive drive(SavingJob());
  drive.JoinAll();
  const auto actions =
      drive.Apply(These({NoticeOf("cpu", 10000), NoticeOf("cpu", -1), NoticeOf("gpu", 7)}));
  EXPECT_THAT(ToldToSave(actions), IsEmpty());
  EXPECT_THAT(drive.state.record().disruptions, IsEmpty());
}

TEST(NoticesTest, ScriptsAgreeOnACheckpoint) {
  Drive drive(MakeScriptJob());
  drive.JoinAll();
  for (const StreamId stream : {20, 21, 30}) {
    drive.Apply(ScriptWordReceived{stream, PositionWord(1, 0)});
  }
  EXPECT_THAT(ToldTo(30, drive.Apply(These({NoticeOf("cpu", 0)}))),
              Contains(HasSubstr("prepare ")));
  for (const StreamId stream : {20, 21, 30}) {
    drive.Apply(ScriptWordReceived{stream, AnswerWord(1, 4)});
  }
  Tell(drive, 20, 4);
  EXPECT_FALSE(drive.state.record().disruptions[0].checkpoint_seconds.has_value());
  Tell(drive, 20, 5);
  drive.Apply(Tick{});
  EXPECT_EQ(drive.state.record().disruptions[0].checkpoint_step, 4);
}

// The next head has it in its history, and is told the same again.
TEST(NoticesTest, SurvivesItsHead) {
  Drive drive(SavingJob());
  drive.JoinAll();
  Tell(drive, 20, 7, 5);
  drive.Apply(These({NoticeOf("cpu", 0)}));
  Tell(drive, 20, 8, 8);
  v1::History history = BuildHistory(drive.state.record(), "run", drive.Time());
  State next({.job = SavingJob(), .job_json = "{}", .history = history}, drive.Time());
  next.Apply(These({NoticeOf("cpu", 0)}), drive.Time());
  ASSERT_THAT(next.record().disruptions, SizeIs(1));
  EXPECT_EQ(next.record().disruptions[0].checkpoint_step, 8);
  EXPECT_EQ(next.record().steps_done.furthest, 8);
}

int64_t Redone(const Drive& drive) { return drive.state.record().steps_done.redone; }

// Heartbeats of ranks come in any order.
TEST(StepsRedoneTest, AreThoseBetweenWhereRanksWereAndWhereRankZeroBegins) {
  Drive drive(SavingJob());
  drive.JoinAll();
  Tell(drive, 21, 7);
  Tell(drive, 20, 7);
  EXPECT_EQ(Redone(drive), 0);
  Tell(drive, 21, 12);
  drive.Apply(StreamClosed{20, true});
  drive.Hello(40, MakeHello("gpu", 0, 0, 2));
  Tell(drive, 40, 10, 0, 10);  // where it begins is not settled yet
  EXPECT_EQ(Redone(drive), 0);
  Tell(drive, 21, 13, 0, 10);
  Tell(drive, 40, 11, 0, 10);
  EXPECT_EQ(Redone(drive), 2);
  Tell(drive, 40, 15, 0, 10);
  EXPECT_EQ(Redone(drive), 2);
}

TEST(StepsRedoneTest, WhoTakesTheStateOfTheOthersDoesNothingAgain) {
  Drive drive(SavingJob());
  drive.JoinAll();
  Tell(drive, 20, 9);
  Tell(drive, 21, 9);
  drive.Apply(StreamClosed{20, true});
  drive.Hello(40, MakeHello("gpu", 0, 0, 2));
  Tell(drive, 21, 14);
  Tell(drive, 40, 14, 0, 11);
  EXPECT_EQ(Redone(drive), 0);
}

TEST(StepsRedoneTest, ANewHeadCountsNothingTwice) {
  Drive drive(SavingJob());
  drive.JoinAll();
  Tell(drive, 20, 9);
  for (const bool has_history : {true, false}) {
    const v1::History history =
        has_history ? BuildHistory(drive.state.record(), "run", drive.Time()) : v1::History();
    State next({.job = SavingJob(), .job_json = "{}", .history = history}, drive.Time());
    const auto join = [&](StreamId stream, int local) {
      v1::Hello hello = MakeHello("gpu", 0, local);
      hello.set_generation(1);
      next.Apply(HelloReceived{stream, hello}, drive.Time());
      HeartbeatReceived told{.stream = stream};
      told.heartbeat.mutable_progress()->set_step(10);
      next.Apply(told, drive.Time());
    };
    join(21, 1);
    join(20, 0);
    EXPECT_EQ(next.record().steps_done.redone, 0);
    EXPECT_EQ(next.record().steps_done.furthest, 10);
  }
}

TEST(StepsRedoneTest, AScriptThatBeginsAgainDoesThoseSinceWhatItSaved) {
  Drive drive(MakeScriptJob());
  drive.JoinAll();
  Tell(drive, 20, 100);
  Tell(drive, 20, 90);
  Tell(drive, 20, 95);
  EXPECT_EQ(Redone(drive), 10);
}

}  // namespace
}  // namespace hetero::head
