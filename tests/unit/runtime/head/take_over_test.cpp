// A head that takes the place of another: who has to come back to it, and by when.
#include <gtest/gtest.h>

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
