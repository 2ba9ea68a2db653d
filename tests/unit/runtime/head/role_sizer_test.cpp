#include "runtime/head/role_sizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/head/status_builder.h"
#include "tests/unit/runtime/head/job_fixture.h"

namespace hetero::head {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Each of the three ranks has done one step per 0.1 s of work and waited the rest of the second
// away: 10 samples a step, of all ranks.
v1::Heartbeat Rank(int second, double wait_share) {
  v1::Heartbeat heartbeat;
  v1::Progress& progress = *heartbeat.mutable_progress();
  const double working = second * (1 - wait_share);
  progress.set_step(static_cast<int64_t>(working / 0.1 + 0.5));
  progress.set_digest_covers_job(true);
  progress.set_samples_consumed(progress.step() * 10);
  progress.set_train_seconds(second);
  progress.mutable_phases()->set_forward(working);
  progress.mutable_phases()->set_wait(second * wait_share);
  return heartbeat;
}

v1::Heartbeat Worker(int second, double rate) {
  v1::Heartbeat heartbeat;
  heartbeat.mutable_counters()->set_busy_seconds(second);
  heartbeat.mutable_counters()->set_samples(static_cast<int64_t>(second * rate));
  return heartbeat;
}

void PlaySecond(Drive& drive, int second, double wait_share, double rate) {
  drive.Pass(seconds(1));
  for (const StreamId stream : {20, 21, 30}) {
    drive.Apply(HeartbeatReceived{stream, Rank(second, wait_share)});
  }
  drive.Apply(HeartbeatReceived{10, Worker(second, rate)});
}

TEST(RoleSizerTest, AsksForWhatTheTrainersCanTake) {
  api::HeteroTrainingJob job = MakeJob();
  job.spec.autoscaling = api::Switch::kEnabled;
  job.spec.roles[1].replicas = 1;
  Drive drive(job);
  drive.JoinAll();
  // 100 samples/s without input; the one worker makes 40.
  for (int second = 1; second <= 30; ++second) PlaySecond(drive, second, 0.6, 40);
  const v1::JobStatus status = BuildStatus(drive.state.record(), drive.state.plan());
  ASSERT_EQ(status.sizing_size(), 1);
  EXPECT_EQ(status.sizing(0).role(), "cpu");
  EXPECT_EQ(status.sizing(0).needed_replicas(), 3);
  EXPECT_THAT(status.sizing(0).reason(), HasSubstr("can take 100 samples/s"));
  // They are missing now.
  EXPECT_EQ(status.roles(0).desired(), 3);
  EXPECT_EQ(status.roles(0).missing(0), "cpu-1");
}

TEST(RoleSizerTest, SaysNothingWithoutMeasurements) {
  Drive drive;
  drive.JoinAll();
  drive.Pass(seconds(30), {10, 20, 21, 30});
  const v1::JobStatus status = BuildStatus(drive.state.record(), drive.state.plan());
  EXPECT_THAT(status.sizing(), IsEmpty());
  EXPECT_EQ(status.roles(0).desired(), 2);
}

TEST(RoleSizerTest, AWorkerThatStartsAgainCountsFromZero) {
  api::HeteroTrainingJob job = MakeJob();
  job.spec.roles[1].replicas = 1;
  Drive drive(job);
  drive.JoinAll();
  for (int second = 1; second <= 20; ++second) PlaySecond(drive, second, 0.6, 40);
  v1::Hello again = MakeHello("cpu", 0, 0, /*incarnation=*/2);
  drive.Hello(11, again);
  for (int second = 21; second <= 40; ++second) {
    drive.Pass(seconds(1));
    for (const StreamId stream : {20, 21, 30}) {
      drive.Apply(HeartbeatReceived{stream, Rank(second, 0.6)});
    }
    drive.Apply(HeartbeatReceived{11, Worker(second - 20, 40)});
  }
  const v1::JobStatus status = BuildStatus(drive.state.record(), drive.state.plan());
  ASSERT_EQ(status.sizing_size(), 1);
  EXPECT_EQ(status.sizing(0).needed_replicas(), 3);
}

TEST(RoleSizerTest, AWorkerThatLeftUnneededComesBackWithoutAFault) {
  Drive drive;
  drive.JoinAll();
  drive.Finish(10, /*ok=*/true);
  drive.Hello(11, MakeHello("cpu", 0, 0, /*incarnation=*/2));
  EXPECT_THAT(drive.state.record().faults, IsEmpty());
  EXPECT_EQ(drive.state.record().members.at({"cpu", 0, 0}).restarts, 0);
}

}  // namespace
}  // namespace hetero::head
