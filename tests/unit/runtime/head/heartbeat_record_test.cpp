// Who may say what with a heartbeat.
#include "runtime/head/heartbeat_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/runtime/head/long_job.h"

namespace hetero::head {
namespace {

using std::chrono::milliseconds;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// All that only ranks may say.
v1::Heartbeat WordsOfARank() {
  v1::Heartbeat heartbeat;
  heartbeat.mutable_progress()->set_step(1'000'000);
  heartbeat.mutable_progress()->set_first_step_unix_ns(1);
  heartbeat.mutable_progress()->set_checkpoint_uri("file:///made/up");
  heartbeat.mutable_progress()->set_skipped_steps(7);
  heartbeat.add_losses()->set_step(std::numeric_limits<int64_t>::max());
  heartbeat.add_evaluations()->set_step(10);
  for (int id = 0; id < 100; ++id) heartbeat.add_bad_samples()->set_sample_id(id);
  heartbeat.add_faults()->set_what("the sky fell");
  heartbeat.add_placement()->set_op("Resize");
  heartbeat.set_broken_generation(1);
  return heartbeat;
}

// One that was taken over by a picture could fail the job, hide the loss of every later step, and
// have the group of the ranks formed again and again.
TEST(HeartbeatRecordTest, ACpuWorkerSpeaksForNoRank) {
  Drive drive;
  drive.JoinAll();
  const JobRecord& record = drive.state.record();
  std::vector<Action> actions;
  for (int tick = 0; tick < 100; ++tick) {
    v1::Heartbeat heartbeat = WordsOfARank();
    heartbeat.mutable_counters()->set_samples(tick);
    drive.Apply(HeartbeatReceived{10, heartbeat});
    for (Action& action : drive.Pass(milliseconds(100), {20, 21, 30})) {
      actions.push_back(std::move(action));
    }
  }
  EXPECT_THAT(Only<OpenGeneration>(actions), IsEmpty());
  EXPECT_THAT(Stopped(actions), IsEmpty());
  v1::Finished finished;
  finished.set_ok(true);
  *finished.mutable_last() = WordsOfARank();
  drive.Apply(FinishedReceived{10, finished});

  EXPECT_EQ(record.state, v1::JobStatus::RUNNING);
  EXPECT_FALSE(record.first_failure.has_value());
  EXPECT_THAT(record.loss_curve.points(), IsEmpty());
  EXPECT_THAT(record.evaluations, IsEmpty());
  EXPECT_THAT(record.faults, IsEmpty());
  EXPECT_THAT(record.placement, IsEmpty());
  EXPECT_EQ(record.checkpoint_uri, "");
  EXPECT_FALSE(record.startup_seconds.has_value());
  EXPECT_EQ(record.bad_samples.distinct(), 0);
  const MemberRecord& worker = record.members.at({"cpu", 0, 0});
  EXPECT_EQ(worker.progress.ByteSizeLong(), 0u);
  EXPECT_EQ(worker.counters.samples(), 99) << "its own figures count";
}

// One entry for each of the job's pipeline, and none that would spoil a sum.
TEST(HeartbeatRecordTest, WhatOperatorsCostIsTheCpuWorkersWord) {
  api::HeteroTrainingJob job = MakeJob();
  job.spec.pipeline.assign(2, {.op = api::OperatorKind::kHorizontalFlip});
  Drive drive(job);
  drive.JoinAll();
  const auto told = [](int entries, double cpu, double python) {
    v1::Heartbeat heartbeat;
    for (int i = 0; i < entries; ++i) {
      v1::OperatorCost* cost = heartbeat.add_operator_costs();
      cost->set_samples(4);
      cost->set_cpu_seconds(cpu);
      cost->set_python_seconds(python);
    }
    return heartbeat;
  };
  const std::vector<v1::OperatorCost>& costs =
      drive.state.record().members.at({"cpu", 0, 0}).operator_costs;
  drive.Apply(HeartbeatReceived{10, told(3, 1, 0)});
  EXPECT_THAT(costs, IsEmpty());
  drive.Apply(HeartbeatReceived{10, told(2, 3, 2)});
  ASSERT_THAT(costs, SizeIs(2));
  EXPECT_EQ(costs[1].cpu_seconds(), 3);
  EXPECT_EQ(costs[1].python_seconds(), 2);
  drive.Apply(HeartbeatReceived{10, v1::Heartbeat()});  // before it has its pipeline
  EXPECT_THAT(costs, SizeIs(2));
  drive.Apply(HeartbeatReceived{10, told(2, std::numeric_limits<double>::quiet_NaN(), 5)});
  EXPECT_EQ(costs[0].cpu_seconds(), 0);
  EXPECT_EQ(costs[0].python_seconds(), 0);
  drive.Apply(HeartbeatReceived{20, told(2, 7, 0)});
  EXPECT_THAT(drive.state.record().members.at({"gpu", 0, 0}).operator_costs, IsEmpty());
}

// A history with one negative number is passed over as a whole.
TEST(HeartbeatRecordTest, CountersThatCannotBeCostTheNextHeadNothing) {
  LongJob job;
  job.JoinAll();
  v1::Heartbeat heartbeat;
  v1::Counters& counters = *heartbeat.mutable_counters();
  counters.set_batches(-1);
  counters.set_samples(std::numeric_limits<int64_t>::max());
  counters.set_bytes(std::numeric_limits<int64_t>::min());
  counters.set_cpu_seconds(std::numeric_limits<double>::quiet_NaN());
  counters.set_busy_seconds(std::numeric_limits<double>::infinity());
  for (int64_t incarnation = 2; incarnation < 12; ++incarnation) {
    job.Tell(10, heartbeat);
    job.Join(10 + 100 * incarnation, "cpu", 0, incarnation);
    job.Tell(10 + 100 * incarnation, heartbeat);
  }
  const auto history = DecodeHistory(job.HistoryText(), "run", 1);
  EXPECT_TRUE(history.ok()) << history.status();
}

TEST(HeartbeatRecordTest, AStepThatTheJobDoesNotHaveHidesNoLaterLoss) {
  Drive drive;
  drive.JoinAll();
  const auto tell = [&drive](int64_t step) {
    v1::Heartbeat heartbeat;
    heartbeat.mutable_progress()->set_total_steps(100);
    heartbeat.add_losses()->set_step(step);
    heartbeat.add_evaluations()->set_step(step);
    drive.Apply(HeartbeatReceived{20, heartbeat});
  };
  for (const int64_t step : {int64_t{5}, std::numeric_limits<int64_t>::max(), int64_t{100}}) {
    tell(step);
  }
  EXPECT_THAT(drive.state.record().loss_curve.points(), SizeIs(2));
  EXPECT_EQ(drive.state.record().loss_curve.points().back().step(), 100);
  EXPECT_THAT(drive.state.record().evaluations, SizeIs(2));
}

}  // namespace
}  // namespace hetero::head
