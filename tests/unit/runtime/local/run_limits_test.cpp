#include "runtime/local/run_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/local/ignored_fields.h"

namespace hetero::local {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const base::Instant kBegan{seconds(1000)};

api::RunPolicy Policy(std::optional<int64_t> deadline, std::optional<int32_t> stall) {
  api::RunPolicy policy;
  policy.active_deadline_seconds = deadline;
  policy.stall_timeout_seconds = stall;
  return policy;
}

v1::JobStatus At(int64_t step, v1::JobStatus::State state = v1::JobStatus::RUNNING) {
  v1::JobStatus status;
  status.set_state(state);
  status.mutable_progress()->set_step(step);
  return status;
}

TEST(RunLimitsTest, TheDeadlineCountsFromTheBeginning) {
  const RunLimits limits(Policy(60, std::nullopt), kBegan);
  EXPECT_FALSE(limits.DeadlineOver(kBegan + milliseconds(59'999)));
  EXPECT_TRUE(limits.DeadlineOver(kBegan + seconds(60)));
  EXPECT_FALSE(RunLimits(Policy({}, {}), kBegan).DeadlineOver(kBegan + seconds(1'000'000)));
  EXPECT_FALSE(RunLimits(Policy(INT64_MAX, {}), kBegan).DeadlineOver(kBegan + seconds(60)));
}

TEST(RunLimitsTest, AStallIsTheTimeWithoutAStepWhileTrainingRuns) {
  RunLimits limits(Policy({}, 10), kBegan);
  base::Instant now = kBegan;
  EXPECT_FALSE(limits.Stalled(At(0, v1::JobStatus::WAITING), now += seconds(100)));
  EXPECT_FALSE(limits.Stalled(At(0), now += seconds(100))) << "training begins here";
  EXPECT_FALSE(limits.Stalled(At(0), now += seconds(9)));
  EXPECT_FALSE(limits.Stalled(At(1), now += seconds(1)));
  EXPECT_FALSE(limits.Stalled(At(1), now += milliseconds(9'999)));
  EXPECT_TRUE(limits.Stalled(At(1), now += milliseconds(1)));
  EXPECT_FALSE(limits.Stalled(At(1), now += seconds(1))) << "once; the count begins anew";
  limits.BeginAttempt();
  EXPECT_FALSE(limits.Stalled(At(0), now += seconds(50)));
  EXPECT_FALSE(RunLimits(Policy({}, {}), kBegan).Stalled(At(0), now += seconds(1000)));
}

// After a break it makes for the second time the steps since its checkpoint: that is no stall,
// however many they are.
TEST(RunLimitsTest, ATrainingThatGoesOnFromACheckpointDoesNotStall) {
  RunLimits limits(Policy({}, 30), kBegan);
  base::Instant now = kBegan;
  EXPECT_FALSE(limits.Stalled(At(1900), now));
  for (int64_t step = 1000; step <= 1012; ++step) {
    EXPECT_FALSE(limits.Stalled(At(step), now += seconds(5))) << step;
  }
  EXPECT_FALSE(limits.Stalled(At(1012), now += seconds(29)));
  EXPECT_TRUE(limits.Stalled(At(1012), now += seconds(1)));
}

TEST(IgnoredFieldsTest, OnlyWhatIsSetAndHasNoMeaningHere) {
  api::HeteroTrainingJob job;
  job.spec.storage.resize(2);
  job.spec.roles.resize(2);
  job.spec.run_policy = Policy(60, 10);
  job.spec.roles[0].failure_rules.resize(1);
  job.spec.roles[0].failure_rules[0].on_exit_codes.emplace();
  EXPECT_THAT(IgnoredFields(job), IsEmpty());
  job.spec.storage[1].secret_ref.emplace().name = "keys";
  job.spec.roles[1].failure_rules.resize(2);
  job.spec.roles[1].failure_rules[1].on_reason = api::FailureReason::kEvicted;
  job.spec.roles[1].pod_template = "{}";
  job.spec.run_policy.suspend = true;
  job.spec.managed_by = job.spec.run_policy.managed_by = "somebody";
  job.spec.run_policy.clean_pod_policy = api::CleanPodPolicy::kNone;
  job.spec.run_policy.ttl_seconds_after_finished = 0;
  job.spec.scheduling.emplace() = {
      .elastic_priority_class = "low", .gang = api::GangScheduler::kVolcano, .queue = "research"};
  job.spec.network.tls = job.spec.network.network_policy = api::Switch::kDisabled;
  EXPECT_THAT(IgnoredFields(job),
              ElementsAre("spec.storage[1].secretRef", "spec.roles[1].failureRules[1].onReason",
                          "spec.roles[1].template", "spec.runPolicy.suspend", "spec.managedBy",
                          "spec.runPolicy.managedBy", "spec.runPolicy.cleanPodPolicy",
                          "spec.runPolicy.ttlSecondsAfterFinished", "spec.network.networkPolicy",
                          "spec.network.tls", "spec.scheduling.elasticPriorityClass",
                          "spec.scheduling.gang", "spec.scheduling.queue"));
  EXPECT_FALSE(WithoutSecrets(job).spec.storage[1].secret_ref.has_value());
}

}  // namespace
}  // namespace hetero::local
