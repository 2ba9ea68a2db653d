// A head that takes the place of another: who has to come back to it, and by when.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "tests/unit/runtime/head/long_job.h"

namespace hetero::head {
namespace {

using std::chrono::seconds;

std::vector<std::string> LostMembers(const LongJob& job) {
  std::vector<std::string> lost;
  for (const auto& [key, member] : job.state->record().members) {
    if (member.lost) lost.push_back(member.name);
  }
  return lost;
}

// All four have worked for 3 s when the head is lost; of its successor nobody has heard yet.
void LoseTheHead(LongJob* job) {
  job->JoinAll();
  job->Pass(seconds(3), {10, 20, 21, 30});
  job->ReplaceHead();
}

// It had no connection to this head that could break, so it was waited for until the end.
TEST(TakeOverTest, ATrainerThatFrozeUnderTheHeadBeforeIsLostAndReplaced) {
  LongJob job;
  LoseTheHead(&job);
  job.Join(10, "cpu", 0, 1, 1);
  job.Join(20, "gpu", 0, 1, 1);
  job.Join(21, "gpu", 1, 1, 1);
  job.Pass(seconds(4), {10, 20, 21});
  EXPECT_EQ(LostMembers(job), std::vector<std::string>{});
  job.Pass(seconds(2), {10, 20, 21});
  EXPECT_EQ(LostMembers(job), std::vector<std::string>{"big-0"});
  const MemberRecord& lost = *FindRank(job.state->record(), 2);
  EXPECT_EQ(lost.hello.identity().incarnation(), 1) << "which process is to be replaced";
  ASSERT_FALSE(job.state->record().faults.empty());
  EXPECT_EQ(job.state->record().faults.back().what,
            "big-0 was lost: it did not come back to the head that took over within 5 s "
            "(spec.runPolicy.memberTimeoutSeconds)");

  job.Join(30, "big", 0, 2);
  EXPECT_EQ(job.state->record().generation, 2);
  EXPECT_EQ(FindRank(job.state->record(), 2)->restarts, 1);
}

// The job waited for its minReplicas until the end.
TEST(TakeOverTest, ACpuWorkerThatFrozeUnderTheHeadBeforeIsLostAndReplaced) {
  LongJob job;
  LoseTheHead(&job);
  job.Join(20, "gpu", 0, 1, 1);
  job.Join(21, "gpu", 1, 1, 1);
  job.Join(30, "big", 0, 1, 1);
  job.Pass(seconds(4), {20, 21, 30});
  EXPECT_EQ(LostMembers(job), std::vector<std::string>{});
  job.Pass(seconds(2), {20, 21, 30});
  EXPECT_EQ(LostMembers(job), std::vector<std::string>{"cpu-0"});
  ASSERT_FALSE(job.state->record().faults.empty());
  EXPECT_EQ(job.state->record().faults.back().what,
            "cpu-0 was lost: it did not come back to the head that took over within 5 s "
            "(spec.runPolicy.memberTimeoutSeconds)");
  job.Join(10, "cpu", 0, 2, 1);
  job.Pass(seconds(1), {10, 20, 21, 30});
  EXPECT_EQ(LostMembers(job), std::vector<std::string>{});
}

// Nobody replaces a CPU worker that is frozen: the job does without it, as before its head was
// lost.
TEST(TakeOverTest, AGenerationAfterTheFirstDoesNotWaitForAFrozenCpuWorker) {
  LongJob job;
  LoseTheHead(&job);
  job.Join(20, "gpu", 0, 1, 1);
  job.Join(21, "gpu", 1, 1, 1);
  job.Join(30, "big", 0, 2);
  job.Pass(seconds(4), {20, 21, 30});
  EXPECT_EQ(job.state->record().generation, 0) << "the worker may still come back";
  job.Pass(seconds(2), {20, 21, 30});
  EXPECT_EQ(LostMembers(job), std::vector<std::string>{"cpu-0"});
  EXPECT_EQ(job.state->record().generation, 2);
  EXPECT_EQ(job.state->record().state, v1::JobStatus::RUNNING);
}

// It was scaled away, say. The trainers waited for its place to be filled until the job failed.
TEST(TakeOverTest, AGenerationAfterTheFirstDoesNotWaitForACpuWorkerThatHadEnded) {
  LongJob job;
  job.JoinAll();
  job.Pass(seconds(3), {10, 20, 21, 30});
  v1::Finished finished;
  finished.set_ok(true);
  job.Apply(FinishedReceived{10, finished});
  job.Pass(seconds(1), {20, 21, 30});
  job.ReplaceHead();
  job.Join(20, "gpu", 0, 1, 1);
  job.Join(21, "gpu", 1, 1, 1);
  job.Join(30, "big", 0, 2);
  job.Pass(seconds(4), {20, 21, 30});
  EXPECT_EQ(job.state->record().generation, 0) << "another may take its place";
  job.Pass(seconds(2), {20, 21, 30});
  EXPECT_EQ(job.state->record().generation, 2);
}

// The first generation of an attempt does, whatever heads there were before.
TEST(TakeOverTest, AnAttemptThatHasNotBegunToTrainWaitsForItsCpuWorkers) {
  LongJob job;
  job.JoinAll();
  job.Pass(seconds(3), {10, 20, 21, 30});
  job.NextAttempt(job.HistoryText());
  job.Join(20, "gpu", 0, 2);
  job.Join(21, "gpu", 1, 2);
  job.Pass(seconds(1), {20, 21});
  job.ReplaceHead();
  job.Join(20, "gpu", 0, 2);
  job.Join(21, "gpu", 1, 2);
  job.Join(30, "big", 0, 2);
  job.Pass(seconds(30), {20, 21, 30});
  EXPECT_EQ(job.state->record().generation, 0);
  job.Join(10, "cpu", 0, 2);
  EXPECT_EQ(job.state->record().generation, 2);
}

bool TellsRoster(const std::vector<Action>& actions) {
  if (LastRoster(actions) != "none") return true;
  const std::vector<Send> sent = Only<Send>(actions);
  return std::any_of(sent.begin(), sent.end(),
                     [](const Send& send) { return send.message.has_roster(); });
}

// Trainers cancelled the batches that it made for them, and began again with it as a stranger.
TEST(TakeOverTest, ACpuWorkerThatIsOnItsWayIsNotCutOff) {
  LongJob job;
  LoseTheHead(&job);
  EXPECT_FALSE(TellsRoster(job.Join(20, "gpu", 0, 1, 1)));
  EXPECT_FALSE(TellsRoster(job.Join(21, "gpu", 1, 1, 1)));
  EXPECT_FALSE(TellsRoster(job.Join(30, "big", 0, 1, 1)));
  EXPECT_EQ(job.state->record().generation, 1) << "it goes on";
  job.Pass(seconds(1), {20, 21, 30});
  EXPECT_FALSE(TellsRoster(job.Greet(10, "cpu", 0, 1, 1))) << "it is to say Ready yet";
  EXPECT_EQ(LastRoster(job.Apply(ReadyReceived{10, MakeReady(100)})), "cpu-0");
}

TEST(TakeOverTest, ACpuWorkerIsNotCutOffBecauseTheLastTrainerIsReadyFirst) {
  LongJob job;
  LoseTheHead(&job);
  job.Join(20, "gpu", 0, 1, 1);
  job.Join(21, "gpu", 1, 1, 1);
  job.Greet(10, "cpu", 0, 1, 1);
  EXPECT_FALSE(TellsRoster(job.Join(30, "big", 0, 1, 1)));
  EXPECT_EQ(job.state->record().generation, 1) << "it goes on";
  EXPECT_EQ(LastRoster(job.Apply(ReadyReceived{10, MakeReady(100)})), "cpu-0");
}

TEST(TakeOverTest, ACpuWorkerThatDoesNotComeBackIsTakenFromTheRoster) {
  LongJob job;
  LoseTheHead(&job);
  for (const auto& [stream, role, local] :
       {std::tuple{20, "gpu", 0}, {21, "gpu", 1}, {30, "big", 0}}) {
    job.Join(stream, role, local, 1, 1);
  }
  job.Pass(seconds(4), {20, 21, 30});
  std::string roster = "none";
  for (int tick = 0; tick < 20 && roster == "none"; ++tick) {
    job.elapsed += std::chrono::milliseconds(100);
    for (const StreamId stream : {20, 21, 30}) job.Apply(HeartbeatReceived{stream, {}});
    roster = LastRoster(job.Apply(Tick{}));
  }
  EXPECT_EQ(roster, "");
}

// Samples of all steps up to there are made with care by a trainer that takes a dead one's place:
// of a long training that was as much again.
TEST(TakeOverTest, HowFarRanksMayHaveComeIsNotCountedFromTheFirstStep) {
  LongJob job;
  LoseTheHead(&job);
  job.JoinAll(1, 1);
  v1::Heartbeat heartbeat;
  heartbeat.mutable_progress()->set_step(500000);
  heartbeat.mutable_progress()->set_checkpoint_step(499999);
  job.Tell(20, heartbeat);
  EXPECT_EQ(job.state->record().reached_step, 500000);
  EXPECT_EQ(job.state->record().checkpoints, 0) << "the head before has counted it";
  heartbeat.mutable_progress()->set_step(500010);
  job.Tell(20, heartbeat);
  EXPECT_EQ(job.state->record().reached_step, 500020);
}

TEST(TakeOverTest, ThoseWhoComeBackInTimeAreNotLost) {
  LongJob job;
  LoseTheHead(&job);
  job.Pass(seconds(4));
  job.JoinAll(1, 1);
  job.Pass(seconds(10), {10, 20, 21, 30});
  EXPECT_EQ(LostMembers(job), std::vector<std::string>{});
  EXPECT_EQ(job.state->record().generation, 1) << "no step is redone";
}

// Its processes are new: startupDeadlineSeconds is what they have.
TEST(TakeOverTest, TheTrainersOfAnotherAttemptAreWaitedFor) {
  LongJob job;
  job.JoinAll();
  job.Pass(seconds(3), {10, 20, 21, 30});
  job.NextAttempt(job.HistoryText());
  job.Pass(seconds(30));
  EXPECT_EQ(LostMembers(job), std::vector<std::string>{});
}

}  // namespace
}  // namespace hetero::head
