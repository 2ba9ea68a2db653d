#include "runtime/head/job_ending.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/runtime/head/job_fixture.h"

namespace hetero::head {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr base::Duration kStopGrace = seconds(2);
constexpr base::Duration kWorkerGrace = seconds(1);

Moment After(base::Duration passed) {
  return {base::Instant(std::chrono::hours(1)) + passed,
          base::WallTime(seconds(1'700'000'000)) +
              std::chrono::duration_cast<base::WallTime::duration>(passed)};
}
const base::Instant kStart = After(seconds(0)).steady;

// Ranks gpu-0 on stream 20 and gpu-1 on stream 21.
class JobEndingTest : public ::testing::Test {
 protected:
  JobEndingTest() {
    for (int32_t rank = 0; rank < 2; ++rank) {
      record_.ranks.push_back({"gpu", rank, 0});
      MemberRecord& member = record_.members[record_.ranks.back()];
      member.name = "gpu-" + std::to_string(rank);
      member.rank = rank;
      member.stream = 20 + rank;
    }
  }
  void Finish(int32_t rank, bool ok) {
    record_.members.at({"gpu", rank, 0}).finished.emplace().set_ok(ok);
  }

  JobRecord record_;
  Outbox outbox_;
  JobEnding ending_{{.trainers = kStopGrace, .workers = kWorkerGrace}, record_, outbox_};
};

TEST_F(JobEndingTest, TheFirstReasonWins) {
  ending_.Stop("Ctrl-C", kStart);
  EXPECT_THAT(Stopped(outbox_.Take()), ElementsAre(20, 21));
  ending_.Fail("gpu-0", "out of memory", kStart);
  ending_.Succeed(kStart);
  EXPECT_THAT(outbox_.Take(), IsEmpty());
  EXPECT_FALSE(record_.first_failure.has_value());
  EXPECT_EQ(record_.stop_reason, "Ctrl-C");
}

TEST_F(JobEndingTest, WhoHasSaidItsLastWordIsNotToldToStop) {
  Finish(0, true);
  ending_.Fail("gpu-1", "out of memory", kStart);
  EXPECT_THAT(Stopped(outbox_.Take()), ElementsAre(21));
}

TEST_F(JobEndingTest, ItIsConcludedOnceWithAllLastWordsOrAfterTheGrace) {
  ending_.Fail("gpu-0", "out of memory", kStart);
  outbox_.Take();
  Finish(0, false);
  ending_.Conclude(After(seconds(1)));
  EXPECT_FALSE(record_.ended.has_value());
  ending_.Conclude(After(kStopGrace));
  EXPECT_EQ(record_.ended, After(kStopGrace).wall);
  EXPECT_EQ(record_.state, v1::JobStatus::FAILED);
  EXPECT_THAT(Only<EndJob>(outbox_.Take()), SizeIs(1));
}

TEST_F(JobEndingTest, NothingIsConcludedBeforeItBegan) {
  Finish(0, true);
  Finish(1, true);
  ending_.Conclude(After(seconds(10)));
  EXPECT_FALSE(record_.ended.has_value());
}

TEST_F(JobEndingTest, AStopThatCameTooLateToMatterIsASuccess) {
  ending_.Stop("Ctrl-C", kStart);
  Finish(0, true);
  Finish(1, true);
  ending_.Conclude(After(seconds(0)));
  EXPECT_EQ(record_.state, v1::JobStatus::SUCCEEDED);
}

// With checkpoints the grace may be an hour: it is for those who write them.
TEST_F(JobEndingTest, AWorkerThatSaysNothingIsNotWaitedForAsLongAsATrainer) {
  MemberRecord& worker = record_.members[{"cpu", 0, 0}];
  worker.name = "cpu-0";
  worker.stream = 10;
  Finish(0, true);
  Finish(1, true);
  ending_.Succeed(kStart);
  ending_.Conclude(After(kWorkerGrace - std::chrono::milliseconds(1)));
  EXPECT_FALSE(record_.ended.has_value());
  ending_.Conclude(After(kWorkerGrace));
  EXPECT_TRUE(record_.ended.has_value());
}

TEST_F(JobEndingTest, ADeathIsTheCauseOfALastWordThatOnlyNoticedIt) {
  ending_.FailByLastWord("gpu-0", "peer closed the connection", kStart);
  ending_.BlameDead("gpu-0", "exit code 1");
  EXPECT_EQ(record_.first_failure->member(), "gpu-0");
  ending_.BlameDead("gpu-1", "killed by signal 9");
  EXPECT_EQ(record_.first_failure->member(), "gpu-1");
  EXPECT_EQ(record_.first_failure->message(),
            "killed by signal 9 (then gpu-0: peer closed the connection)");
}

TEST_F(JobEndingTest, ADeathAfterAKnownCauseIsNot) {
  ending_.Fail("gpu-0", "3 bad samples", kStart);
  ending_.BlameDead("gpu-1", "killed by signal 9");
  EXPECT_EQ(record_.first_failure->member(), "gpu-0");
}

}  // namespace
}  // namespace hetero::head
