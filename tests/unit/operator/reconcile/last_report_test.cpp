// Jobs that the operator ends while their heads run, against the API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_cluster.h"

namespace hetero::reconcile {
namespace {

using api::ConditionType;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using State = plan::HeadReport::State;

// Trains, with more in its spec, until `worker` ends with this code.
void RunUntilWorkerEnds(FakeCluster& cluster, const std::string& more_spec, int exit_code) {
  cluster.CreateJob("vit", more_spec);
  ASSERT_TRUE(cluster.Settle("vit"));
  cluster.RunPods();
  ASSERT_TRUE(cluster.Settle("vit"));
  cluster.HeadSays("vit", State::kRunning);
  ASSERT_TRUE(cluster.Settle("vit"));
  cluster.EndContainer("vit-cpu-1", exit_code);
  ASSERT_TRUE(cluster.Settle("vit"));
}

void ExpectHeadHeardOut(FakeCluster& cluster, const std::string& reason, const std::string& why) {
  const api::JobStatus before = cluster.Status("vit");
  const api::Condition* failed = before.Find(ConditionType::kFailed);
  ASSERT_NE(failed, nullptr);
  ASSERT_THAT(cluster.heads.stops, SizeIs(1));
  EXPECT_EQ(cluster.heads.stops[0].failure, reason);
  EXPECT_THAT(cluster.heads.stops[0].reason, HasSubstr(why));
  EXPECT_TRUE(cluster.heads.followed.contains("team/vit"));
  for (const char* pod : {"vit-head-0", "vit-cpu-0", "vit-gpu-0"}) {
    EXPECT_FALSE(cluster.Pod(pod).deletion_time) << pod;
  }

  plan::HeadReport& report = cluster.heads.reports["team/vit"];
  report.state = State::kFailed;
  report.verdict =
      api::Verdict{.message = why, .result = {.steps = 7, .report_uri = "file:///out/report.json"}};
  ASSERT_TRUE(cluster.Settle("vit"));
  const api::JobStatus status = cluster.Status("vit");
  ASSERT_TRUE(status.result.has_value());
  EXPECT_EQ(status.result->steps, 7);
  EXPECT_EQ(status.result->report_uri, "file:///out/report.json");
  EXPECT_EQ(status.Find(ConditionType::kFailed)->reason, reason);
  EXPECT_THAT(cluster.heads.stops, SizeIs(1));
  cluster.FinishTerminating();
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_THAT(cluster.api.Objects("pods"), SizeIs(0));
}

TEST(LastReportTest, OfAJobWhoseBudgetOfRestartsIsUsedUp) {
  FakeCluster cluster;
  ASSERT_NO_FATAL_FAILURE(RunUntilWorkerEnds(cluster, R"({"runPolicy": {"maxRestarts": 0}})", 1));
  ExpectHeadHeardOut(cluster, "MaxRestartsExceeded", "runPolicy.maxRestarts allows 0 restarts");
}

TEST(LastReportTest, OfAJobThatAFailureRuleEnds) {
  FakeCluster cluster;
  ASSERT_NO_FATAL_FAILURE(RunUntilWorkerEnds(cluster,
                                             R"({"roles": [{"name": "head", "type": "Head"},
                             {"name": "cpu", "type": "CPUWorker", "replicas": 2, "failureRules":
                               [{"action": "FailJob",
                                 "onExitCodes": {"operator": "In", "values": [3]}}]},
                             {"name": "gpu", "type": "GPUWorker"}]})",
                                             3));
  ExpectHeadHeardOut(cluster, "RuleMatched", "failureRules[0]");
}

}  // namespace
}  // namespace hetero::reconcile
