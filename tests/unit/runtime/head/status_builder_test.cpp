#include "runtime/head/status_builder.h"

#include <gtest/gtest.h>

#include "operator/reconcile/head_limits.h"
#include "runtime/head/history_codec.h"
#include "tests/unit/runtime/head/job_fixture.h"

namespace hetero::head {
namespace {

constexpr int kEvaluations = 5000;
constexpr size_t kLong = size_t{1} << 20;

// It carried every evaluation: after some 1,900 the operator heard nothing more.
TEST(StatusBuilderTest, HoweverLongAJobTakesItsStatusIsWhatTheOperatorReads) {
  Drive drive;
  drive.JoinAll();
  v1::Heartbeat heartbeat;
  for (int i = 1; i <= kEvaluations; ++i) {
    v1::EvaluationResult& result = *heartbeat.add_evaluations();
    result.set_epoch(i);
    result.set_step(10 * i);
    result.set_loss(0.1);
    result.set_accuracy(0.9);
    result.set_samples(10'000);
  }
  v1::Progress& progress = *heartbeat.mutable_progress();
  progress.set_checkpoint_uri(std::string(kLong, 'u'));
  progress.set_checkpoint_problem(std::string(kLong, 'p'));
  progress.set_last_break(std::string(kLong, 'b'));
  drive.Apply(HeartbeatReceived{20, heartbeat});
  drive.Finish(20, false, false, std::string(kLong, 'm'));
  const JobRecord& record = drive.state.record();
  EXPECT_EQ(record.evaluations.size(), kEvaluations) << "the report has them all";
  const v1::JobStatus status = BuildStatus(record, drive.state.plan());
  EXPECT_LE(status.ByteSizeLong() + kMaxHistoryText,
            reconcile::StatusMessageLimit(static_cast<int64_t>(record.members.size())));
  ASSERT_EQ(status.evaluations_size(), 1);
  EXPECT_EQ(status.evaluations(0).epoch(), kEvaluations);
  EXPECT_EQ(status.first_failure().member(), "gpu-0.0");
  EXPECT_EQ(status.checkpoint_problem().substr(0, 5), "ppppp");
}

}  // namespace
}  // namespace hetero::head
