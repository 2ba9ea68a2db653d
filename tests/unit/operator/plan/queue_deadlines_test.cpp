// Deadlines of jobs in queues: none counts while the job waits, and each from its admission.
#include "api/labels.h"
#include "tests/unit/operator/plan/queue_fixture.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using std::chrono::hours;
using std::chrono::seconds;
using State = HeadReport::State;

class QueueDeadlinesTest : public QueueTest {
 protected:
  QueueDeadlinesTest()
      : QueueTest(Job()
                      .Cpus(2)
                      .Queue("team")
                      .MaxRestarts(1)
                      .StartupDeadline(60)
                      .ActiveDeadline(600)
                      .StallTimeout(30)) {}
  // By the hour, in each state that a Workload waits in.
  void WaitForHours(int count) {
    for (int i = 0; i < count; ++i) {
      cluster_.Advance(hours(1));
      cluster_.Settle();
      ASSERT_FALSE(cluster_.status().finished());
      ASSERT_TRUE(cluster_.pods.empty());
    }
  }
  void Pass(seconds time) {
    cluster_.Advance(time);
    cluster_.Settle();
  }
};

TEST_F(QueueDeadlinesTest, NoneCountsBeforeTheAdmission) {
  cluster_.Settle();
  WaitForHours(2);
  cluster_.ChangeGang([](ObservedWorkload& gang) {
    gang.conditions = {{.type = "QuotaReserved", .status = "True", .reason = "QuotaReserved"}};
    gang.checks = {{.name = "nodes", .state = "Pending"}};
  });
  WaitForHours(2);
  cluster_.Admit(ModelCluster::kGang, "flavor-that-is-not-read-yet");
  WaitForHours(2);
  EXPECT_FALSE(cluster_.status().start_time.has_value());
  EXPECT_EQ(cluster_.status().restarts, 0);
  EXPECT_EQ(cluster_.status().attempt, 0);
}

TEST_F(QueueDeadlinesTest, TheStartCountsFromTheAdmission) {
  cluster_.Settle();
  WaitForHours(1);
  cluster_.Admit();
  cluster_.Settle();
  Pass(seconds(59));
  EXPECT_FALSE(cluster_.status().finished());
  Pass(seconds(2));
  EXPECT_EQ(cluster_.State(ConditionType::kFailed), "True/StartupDeadlineExceeded");
}

TEST_F(QueueDeadlinesTest, TheTrainingCountsFromTheAdmission) {
  cluster_.ChangeSpec([](api::Spec& spec) { spec.run_policy.stall_timeout_seconds.reset(); });
  cluster_.Settle();
  WaitForHours(1);
  cluster_.Admit();
  cluster_.RunJob();
  Pass(seconds(580));  // and ten until it trained
  EXPECT_FALSE(cluster_.status().finished());
  Pass(seconds(20));
  EXPECT_EQ(cluster_.State(ConditionType::kFailed), "True/DeadlineExceeded");
}

TEST_F(QueueDeadlinesTest, AStallCountsFromTheLastStep) {
  cluster_.Settle();
  WaitForHours(1);
  cluster_.Admit();
  cluster_.RunJob();
  Pass(seconds(29));
  EXPECT_EQ(cluster_.status().attempt, 1);
  Pass(seconds(2));
  EXPECT_EQ(cluster_.State(ConditionType::kRestarting), "True/Stalled");
}

TEST_F(QueueDeadlinesTest, AllCountAnewFromTheNextAdmission) {
  Train();
  Pass(seconds(25));
  LoseQuota();
  WaitForHours(3);
  cluster_.Admit();
  cluster_.head.reset();
  cluster_.Settle();
  Pass(seconds(59));
  EXPECT_FALSE(cluster_.status().finished());
  cluster_.RunJob();
  Pass(seconds(20));
  EXPECT_FALSE(cluster_.status().finished());
  EXPECT_EQ(cluster_.status().restarts, 0);
  EXPECT_EQ(cluster_.status().attempt, 2);
}

}  // namespace
}  // namespace hetero::plan
