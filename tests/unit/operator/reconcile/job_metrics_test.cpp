#include "operator/reconcile/job_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/job_log.h"

namespace hetero::reconcile {
namespace {

using ::testing::HasSubstr;

class JobMetricsTest : public ::testing::Test {
 protected:
  double JobsIn(const std::string& state) {
    return registry_.GetGauge("hetero_jobs", "", {{"state", state}}).value();
  }
  metrics::Registry registry_;
  JobMetrics metrics_{registry_};
};

TEST_F(JobMetricsTest, EveryStateIsThereFromTheStart) {
  const std::string text = registry_.Text();
  for (const char* state : {"Pending", "PodsCreated", "Registered", "Running", "Restarting",
                            "Stalled", "Suspended", "Succeeded", "Failed"}) {
    EXPECT_THAT(text, HasSubstr("hetero_jobs{state=\"" + std::string(state) + "\"} 0"));
  }
}

TEST_F(JobMetricsTest, AJobIsCountedOnceAndForgottenWhenItIsGone) {
  metrics_.Moved("", "Pending");
  metrics_.Moved("", "Running");
  metrics_.Moved("Pending", "Running");
  metrics_.Moved("Running", "Running");
  EXPECT_EQ(JobsIn("Pending"), 0);
  EXPECT_EQ(JobsIn("Running"), 2);
  metrics_.Moved("Running", "");
  EXPECT_EQ(JobsIn("Running"), 1);
}

TEST_F(JobMetricsTest, DollarsAreThoseThatTheStatusGainsByAWrite) {
  plan::ObservedJob job;
  api::JobStatus written;
  written.cost.emplace().dollars = 1.5;
  plan::Observed observed{.job = std::make_shared<plan::ObservedJob>(job)};
  metrics_.Written(observed, written);
  job.status = written;
  observed.job = std::make_shared<plan::ObservedJob>(job);
  written.cost->dollars = 1.75;
  metrics_.Written(observed, written);
  EXPECT_EQ(registry_.GetCounter("hetero_job_cost_dollars_total", "").value(), 1.75);
}

TEST_F(JobMetricsTest, TheMostTellingConditionIsTheState) {
  api::JobStatus status;
  EXPECT_EQ(StateOf(status), "Pending");
  for (const auto type : {api::ConditionType::kRunning, api::ConditionType::kRegistered}) {
    api::Condition& condition = status.conditions.emplace_back();
    condition.type = type;
    condition.status = api::ConditionStatus::kTrue;
  }
  EXPECT_EQ(StateOf(status), "Running");
}

TEST(ShortDurationTest, ReadsAsPeopleSayIt) {
  using namespace std::chrono_literals;
  EXPECT_EQ(ShortDuration(-1s), "0s");
  EXPECT_EQ(ShortDuration(59900ms), "59s");
  EXPECT_EQ(ShortDuration(187s), "3m07s");
  EXPECT_EQ(ShortDuration(125min), "2h05m");
}

}  // namespace
}  // namespace hetero::reconcile
