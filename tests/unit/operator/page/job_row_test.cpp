#include "operator/page/job_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/labels.h"
#include "tests/unit/operator/page/observed_jobs.h"

namespace hetero::jobs_page {
namespace {

using api::ConditionType;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(JobRow, ATrainingShowsItsFigures) {
  const JobRow row = RowOf(TrainingJob("team", "vit"));
  EXPECT_EQ(row.name_space, "team");
  EXPECT_EQ(row.name, "vit");
  EXPECT_EQ(row.created, 1'767'225'600);
  EXPECT_EQ(row.attention, Attention::kTraining);
  EXPECT_EQ(row.state, "Running");
  EXPECT_EQ(row.note, "");
  EXPECT_EQ(row.registered, "3/3");
  EXPECT_EQ(row.head_pod, "vit-boss-0");
  EXPECT_EQ(row.step, 400);
  EXPECT_EQ(row.total_steps, 1000);
  EXPECT_EQ(row.samples_per_second, 1234.567);
  EXPECT_EQ(row.wait_percent, 2.5);
  EXPECT_EQ(row.eta_seconds, 600);
  EXPECT_EQ(row.dollars, std::nullopt);
  EXPECT_EQ(row.findings, 0u);
}

TEST(JobRow, WhatNeedsAttentionIsOneWord) {
  const auto attention = [](ConditionType type) {
    plan::ObservedJob job = TrainingJob("team", "vit");
    SetTrue(job, type, "Why", "why");
    return RowOf(job).attention;
  };
  EXPECT_EQ(attention(ConditionType::kFailed), Attention::kFailed);
  EXPECT_EQ(attention(ConditionType::kSucceeded), Attention::kSucceeded);
  EXPECT_EQ(attention(ConditionType::kSuspended), Attention::kSuspended);
  EXPECT_EQ(attention(ConditionType::kStalled), Attention::kStalled);
  plan::ObservedJob job = TrainingJob("team", "vit");
  job.status.progress->data_wait_percent = 9.9;
  EXPECT_EQ(RowOf(job).attention, Attention::kTraining);
  job.status.findings = {InputBound()};
  EXPECT_EQ(RowOf(job).attention, Attention::kFound);
  job.status.findings.front().active = false;
  EXPECT_EQ(RowOf(job).attention, Attention::kTraining);
  job.status.progress->data_wait_percent = 10;
  EXPECT_EQ(RowOf(job).attention, Attention::kStarved);
  job.status.conditions.clear();
  EXPECT_EQ(RowOf(job).attention, Attention::kWaiting);
  EXPECT_EQ(RowOf(job).state, "Waiting");
}

// As in kubectl hetero list: a rate of a training that does not run is of the past.
TEST(JobRow, RatesAreThoseOfNow) {
  plan::ObservedJob job = TrainingJob("team", "vit");
  job.status.conditions.clear();
  SetTrue(job, ConditionType::kSuspended, "Suspended", "suspended at step 400");
  const JobRow row = RowOf(job);
  EXPECT_EQ(row.step, 400);
  EXPECT_EQ(row.samples_per_second, std::nullopt);
  EXPECT_EQ(row.wait_percent, std::nullopt);
  EXPECT_EQ(row.eta_seconds, std::nullopt);
  EXPECT_EQ(row.head_pod, "");
  EXPECT_EQ(row.note, "Suspended: suspended at step 400");
}

TEST(JobRow, TheQueueIsNamedWithWhatItSays) {
  const JobRow row = RowOf(PlayedJob(1));
  EXPECT_EQ(row.queue, "team-queue");
  EXPECT_EQ(row.queue_state, "Pending");
  EXPECT_EQ(row.attention, Attention::kWaiting);
  EXPECT_EQ(row.state, "Queued");
  EXPECT_THAT(row.note, HasSubstr("Pending: couldn't assign flavors"));
  EXPECT_EQ(RowOf(PlayedJob(6)).queue_state, "") << "it names no queue";
}

TEST(JobRow, WhatHasPricesSaysWhatItCost) {
  const JobRow row = RowOf(PlayedJob(7));
  EXPECT_EQ(row.dollars, 19.5);
  EXPECT_EQ(row.waiting_dollars, 8.25);
}

TEST(JobRow, AFindingThatHoldsComesFirst) {
  plan::ObservedJob job = TrainingJob("team", "vit");
  job.status.findings = {InputBound(), InputBound(), InputBound()};
  job.status.findings[0].active = false;
  job.status.findings[1].rule = "SlowWorker";
  const JobRow row = RowOf(job);
  ASSERT_TRUE(row.finding);
  EXPECT_EQ(row.finding->rule, "SlowWorker");
  EXPECT_EQ(row.findings, 3u);
}

// Last words of processes have many lines, and may hold what nobody else is to read.
TEST(JobRow, NoLogsAreTold) {
  plan::ObservedJob job = PlayedJob(0);
  job.status.first_failure = api::FirstFailure{.pod = "vit-gpu-3", .message = "Traceback: secret"};
  const JobRow row = RowOf(job);
  EXPECT_EQ(row.note, "TrainingFailed: rank 3 on node gpu-17 ended with exit code 1 (OOMKilled)");
  EXPECT_THAT(row.note, Not(HasSubstr("secret")));
}

TEST(JobRow, RemarksComeBeforeAllElse) {
  plan::ObservedJob job = PlayedJob(0);
  job.status.observed_generation = 0;
  EXPECT_EQ(RowOf(job).note, "not seen by an operator yet");
  job.job.spec.managed_by = api::kManagedBySelf;
  EXPECT_EQ(RowOf(job).note, "not seen by an operator yet");
  job.job.spec.managed_by = "kueue.x-k8s.io/multikueue";
  EXPECT_EQ(RowOf(job).note, "managed by kueue.x-k8s.io/multikueue");
  job.deleting = true;
  EXPECT_EQ(RowOf(job).note, "being deleted");
}

TEST(JobRow, OfAnObjectWithoutAnything) {
  const JobRow row = RowOf(plan::ObservedJob());
  EXPECT_EQ(row.created, 0);
  EXPECT_EQ(row.attention, Attention::kWaiting);
  EXPECT_EQ(row.state, "Waiting");
  EXPECT_EQ(row.step, 0);
}

}  // namespace
}  // namespace hetero::jobs_page
