#include "runtime/head/report_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "base/version.h"
#include "runtime/head/result.h"
#include "runtime/head/status_builder.h"
#include "runtime/head/verdict.h"
#include "tests/unit/runtime/head/job_fixture.h"

namespace hetero::head {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

v1::Heartbeat Beat(int64_t samples, uint64_t high, uint64_t low, double cpu_seconds) {
  v1::Heartbeat heartbeat;
  heartbeat.mutable_counters()->set_samples(samples);
  heartbeat.mutable_counters()->set_cpu_seconds(cpu_seconds);
  v1::Progress* progress = heartbeat.mutable_progress();
  progress->set_step(10);
  progress->set_epoch(2);
  progress->set_total_steps(40);
  progress->set_samples_consumed(samples);
  progress->set_loss(0.5);
  progress->set_data_wait_percent(41.2);
  progress->set_digest_high(high);
  progress->set_digest_low(low);
  progress->set_tickets_reissued(1);
  progress->set_train_seconds(4);
  progress->mutable_phases()->set_wait(1.6);
  return heartbeat;
}

api::HeteroTrainingJob MakePricedJob() {
  api::HeteroTrainingJob job = MakeJob();
  job.spec.roles[1].price_per_hour = "0.50";  // x2
  job.spec.roles[3].price_per_hour = "4";
  return job;
}

// Three ranks, one CPU worker; a priced job that has run for 36 s.
class FinishedRun : public Drive {
 public:
  explicit FinishedRun(bool digest_covers_job) : Drive(MakePricedJob()) {
    JoinAll();
    elapsed += seconds(3);
    v1::Heartbeat first = Beat(100, 1, UINT64_MAX, 3);
    first.mutable_progress()->set_digest_covers_job(digest_covers_job);
    first.mutable_progress()->set_first_step_unix_ns(1'700'000'003'000'000'000);
    first.add_losses()->set_step(10);
    v1::EvaluationResult* evaluation = first.add_evaluations();
    evaluation->set_epoch(1);
    evaluation->set_accuracy(0.9);
    Apply(HeartbeatReceived{20, first});
    Apply(HeartbeatReceived{21, Beat(100, 1, 2, 1)});
    Apply(HeartbeatReceived{30, Beat(50, 0, 0, 2)});
    v1::Heartbeat worker;
    worker.mutable_counters()->set_samples(250);
    worker.mutable_counters()->set_cpu_seconds(5);
    Apply(HeartbeatReceived{10, worker});
    Pass(seconds(33), {10, 20, 21, 30});
    for (const StreamId stream : {20, 21, 30, 10}) Finish(stream, true);
  }
};

// The sentence and the figures beside it must not contradict each other.
TEST(ReportBuilderTest, TimesAreThoseOfTheRankThatWaitsMost) {
  api::HeteroTrainingJob job = MakeJob();
  Drive drive(job);
  drive.JoinAll();
  const auto beat = [](double seconds, double percent) {
    v1::Heartbeat heartbeat = Beat(100, 0, 0, 1);
    v1::Progress* progress = heartbeat.mutable_progress();
    progress->set_train_seconds(seconds);
    progress->set_data_wait_percent(percent);
    progress->mutable_phases()->set_wait(seconds * percent / 100);
    progress->mutable_waits()->set_workers(seconds * percent / 100);
    return heartbeat;
  };
  drive.Apply(HeartbeatReceived{20, beat(4, 3)});
  drive.Apply(HeartbeatReceived{21, beat(3.9, 60)});
  drive.Apply(HeartbeatReceived{30, beat(1, 95)});  // has only just been replaced
  for (const StreamId stream : {20, 21, 30, 10}) drive.Finish(stream, true);
  const insight::Report report = BuildReport(drive.state.record(), drive.Time());
  EXPECT_DOUBLE_EQ(*report.data_wait_percent, 60);
  EXPECT_DOUBLE_EQ(*report.train_seconds, 3.9);
  EXPECT_DOUBLE_EQ(report.phase_seconds->wait, 3.9 * 0.6);
  EXPECT_DOUBLE_EQ(report.wait_seconds->workers, 3.9 * 0.6);
  std::map<std::string, std::optional<double>> waits;
  for (const insight::ReportWorker& worker : report.workers) {
    waits[worker.name] = worker.data_wait_percent;
  }
  EXPECT_EQ(waits["cpu-0"], std::nullopt) << "only trainers wait";
  EXPECT_EQ(waits["gpu-0.0"], 3);
  EXPECT_EQ(waits["gpu-0.1"], 60);
  EXPECT_THAT(*report.verdict, HasSubstr("input-bound: 60 % of each step waits for data"));
}

TEST(ReportBuilderTest, SaysHowMuchMayWaitAtEachTrainer) {
  Drive drive(MakeJob());
  drive.JoinAll();
  v1::Heartbeat heartbeat = Beat(100, 0, 0, 1);
  heartbeat.mutable_progress()->set_window_bytes(512 << 20);
  heartbeat.mutable_progress()->set_window_batches(53);
  drive.Apply(HeartbeatReceived{20, heartbeat});
  for (const insight::ReportWorker& worker :
       BuildReport(drive.state.record(), drive.Time()).workers) {
    const bool told = worker.name == "gpu-0.0";
    EXPECT_EQ(worker.window_bytes, told ? 512 << 20 : 0) << worker.name;
    EXPECT_EQ(worker.window_batches, told ? 53 : 0) << worker.name;
  }
}

TEST(ReportBuilderTest, OperatorsCostWhatTheWorkersHaveMeasured) {
  api::HeteroTrainingJob job = MakeJob();
  job.spec.pipeline = {{.op = api::OperatorKind::kHorizontalFlip},
                       {.op = api::OperatorKind::kPython, .module = "augment", .function = "cut"}};
  Drive drive(job);
  drive.JoinAll();
  v1::Heartbeat placed = Beat(100, 0, 0, 1);
  for (const char* op : {"HorizontalFlip", "Python"}) {
    v1::PlacementReport* entry = placed.add_placement();
    entry->set_op(op);
    entry->set_worker_seconds(9);  // what rank 0 has made of its own costs
  }
  drive.Apply(HeartbeatReceived{20, placed});
  insight::Report report = BuildReport(drive.state.record(), drive.Time());
  ASSERT_EQ(report.placement.size(), 2u);
  EXPECT_EQ(report.placement[0].worker_seconds, 9);

  v1::Heartbeat measured;
  for (const double seconds : {0.004, 0.4}) {
    v1::OperatorCost* cost = measured.add_operator_costs();
    cost->set_samples(4);
    cost->set_cpu_seconds(seconds);
    if (seconds > 0.1) cost->set_python_seconds(0.36);
  }
  drive.Apply(HeartbeatReceived{10, measured});
  report = BuildReport(drive.state.record(), drive.Time());
  EXPECT_DOUBLE_EQ(*report.placement[0].worker_seconds, 0.001);
  EXPECT_FALSE(report.placement[0].python_seconds.has_value());
  EXPECT_EQ(report.placement[0].function, "");
  EXPECT_DOUBLE_EQ(*report.placement[1].worker_seconds, 0.1);
  EXPECT_DOUBLE_EQ(*report.placement[1].python_seconds, 0.09);
  EXPECT_EQ(report.placement[1].function, "augment.cut");

  // What its processes have measured stays when another one takes its place.
  drive.Hello(11, MakeHello("cpu", 0, 0, 2));
  report = BuildReport(drive.state.record(), drive.Time());
  EXPECT_DOUBLE_EQ(*report.placement[1].worker_seconds, 0.1);
  for (v1::OperatorCost& cost : *measured.mutable_operator_costs()) {
    cost.set_cpu_seconds(3 * cost.cpu_seconds());
  }
  measured.mutable_operator_costs(0)->set_cpu_seconds(0);
  drive.Apply(HeartbeatReceived{11, measured});
  report = BuildReport(drive.state.record(), drive.Time());
  EXPECT_DOUBLE_EQ(*report.placement[0].worker_seconds, 0.0005);
  EXPECT_DOUBLE_EQ(*report.placement[1].worker_seconds, 0.2);
}

TEST(ReportBuilderTest, SumsOverRanksAndRoles) {
  const FinishedRun drive(false);
  const insight::Report report = BuildReport(drive.state.record(), drive.Time());
  EXPECT_EQ(report.job, "blur");
  EXPECT_EQ(report.state, "Succeeded");
  EXPECT_EQ(report.generations, 1);
  EXPECT_EQ(report.steps, 10);
  EXPECT_EQ(report.epochs, 2);
  EXPECT_EQ(report.samples_consumed, 250);
  // (1, 2^64 - 1) + (1, 2) carries into the upper half.
  EXPECT_EQ(report.stream_digest, "00000000000000030000000000000001");
  EXPECT_EQ(report.tickets_reissued, 3);
  EXPECT_EQ(report.seed, 7);
  EXPECT_DOUBLE_EQ(*report.startup_seconds, 3);
  EXPECT_DOUBLE_EQ(*report.train_seconds, 4);
  EXPECT_DOUBLE_EQ(*report.wall_seconds, 36);
  EXPECT_DOUBLE_EQ(*report.samples_per_second, 62.5);
  EXPECT_DOUBLE_EQ(*report.accuracy, 0.9);
  EXPECT_DOUBLE_EQ(*report.loss, 0.5);
  EXPECT_DOUBLE_EQ(report.phase_seconds->wait, 1.6);
  EXPECT_EQ(report.verdict, "input-bound: 41 % of each step waits for data");
  EXPECT_DOUBLE_EQ(report.cpu_seconds_per_sample.at("cpu"), 5.0 / 250);
  EXPECT_DOUBLE_EQ(report.cpu_seconds_per_sample.at("gpu"), 4.0 / 250);
  // $5 an hour for 36 s.
  EXPECT_NEAR(*report.cost_dollars, 0.05, 1e-12);
  EXPECT_NEAR(*report.cost_per_million_samples, 200, 1e-9);
  ASSERT_THAT(report.workers, SizeIs(4));
  EXPECT_EQ(report.workers[0].name, "big-0");
  EXPECT_EQ(report.workers[1].name, "cpu-0");
  EXPECT_EQ(report.workers[2].name, "gpu-0.0");
}

TEST(ReportBuilderTest, SumsWhatStoresWereAskedForByAllProcesses) {
  api::HeteroTrainingJob job = MakeJob();
  job.spec.storage = {{.prefix = "s3://bucket"}};
  const auto asked = [](int64_t requests, double dollars) {
    v1::Heartbeat heartbeat;
    v1::Counters& counters = *heartbeat.mutable_counters();
    counters.set_storage_requests(requests);
    counters.set_storage_retries(1);
    counters.set_storage_bytes(100 * requests);
    counters.set_storage_dollars(dollars);
    return heartbeat;
  };
  for (const bool priced : {false, true}) {
    if (priced) job.spec.storage[0].prices = api::StoragePrices{.per_thousand_gets = "0.0004"};
    Drive drive(job);
    drive.JoinAll();
    EXPECT_FALSE(BuildReport(drive.state.record(), drive.Time()).storage.has_value());
    drive.Apply(HeartbeatReceived{10, asked(40, 2)});
    drive.Apply(HeartbeatReceived{10, asked(50, 2.5)});  // totals of the process
    drive.Apply(HeartbeatReceived{20, asked(3, 0.25)});
    drive.Apply(HeartbeatReceived{21, asked(-7, 0)});  // nobody takes that off the sum
    const insight::Report report = BuildReport(drive.state.record(), drive.Time());
    ASSERT_TRUE(report.storage.has_value());
    EXPECT_EQ(report.storage->requests, 53);
    EXPECT_EQ(report.storage->retries, 3);
    EXPECT_EQ(report.storage->bytes, 5300);
    EXPECT_EQ(report.storage->dollars, priced ? std::optional(2.75) : std::nullopt);
  }
}

TEST(ReportBuilderTest, TellsWhatOrdersOfTheSamplesTake) {
  api::HeteroTrainingJob job = MakeJob();
  job.spec.storage = {
      {.prefix = "s3://bucket", .prices = api::StoragePrices{.per_thousand_gets = "0.0004"}}};
  Drive drive(job);
  drive.JoinAll();
  v1::Heartbeat heartbeat;
  heartbeat.mutable_counters()->set_storage_requests(1);
  heartbeat.mutable_progress()->set_step(1);
  heartbeat.mutable_progress()->set_samples_consumed(1000);
  const auto add = [&](const std::string& shuffle, double requests, double bytes, double dollars) {
    v1::OrderCost& cost = *heartbeat.add_order_costs();
    cost.set_shuffle(shuffle);
    cost.set_requests_per_sample(requests);
    cost.set_bytes_per_sample(bytes);
    if (dollars != 0) cost.set_dollars_per_sample(dollars);
  };
  add("Full", 1, 5000, 0.0002);
  add("Block of 64", 0.0155, 0, 0);
  add("Never", std::nan(""), 1e300, -1);  // none of it is believed
  drive.Apply(HeartbeatReceived{20, heartbeat});
  drive.Apply(HeartbeatReceived{20, heartbeat});  // each time the same, not more
  const insight::Report report = BuildReport(drive.state.record(), drive.Time());
  ASSERT_TRUE(report.storage.has_value());
  const std::vector<insight::ReportOrder>& orders = report.storage->orders;
  ASSERT_THAT(orders, SizeIs(3));
  EXPECT_EQ(orders[0].shuffle, "Full");
  EXPECT_EQ(orders[0].requests, 1000);
  EXPECT_EQ(orders[0].bytes, 5'000'000);
  EXPECT_DOUBLE_EQ(*orders[0].dollars, 0.2);
  EXPECT_EQ(orders[1].requests, 16);
  EXPECT_FALSE(orders[1].bytes.has_value());
  EXPECT_FALSE(orders[1].dollars.has_value());
  EXPECT_EQ(orders[2].requests, 0);
  EXPECT_EQ(orders[2].dollars, 0);
}

TEST(ReportBuilderTest, NamesTheCommitsThatTheProgramsWereBuiltFrom) {
  Drive drive;
  v1::Hello hello = MakeHello("cpu", 0);
  hello.set_version(base::kVersion);
  hello.set_commit("0123456");
  drive.Hello(10, hello);
  hello.mutable_identity()->set_index(1);
  hello.set_commit("0123456-dirty");
  drive.Hello(11, hello);
  hello = MakeHello("big", 0);
  hello.set_version(base::kVersion);  // of an older version, which told no commit
  drive.Hello(30, hello);
  const insight::Report report = BuildReport(drive.state.record(), drive.Time());
  const std::string version = base::kVersion;
  EXPECT_EQ(report.versions.at("hetero"), base::FullVersion());
  EXPECT_EQ(report.versions.at("cpu"), version + "+0123456, " + version + "+0123456-dirty");
  EXPECT_EQ(report.versions.at("big"), version);
}

TEST(ResultTest, HasTheReportsNumbers) {
  const FinishedRun drive(false);
  const v1::Result result = BuildResult(BuildReport(drive.state.record(), drive.Time()));
  EXPECT_EQ(result.steps(), 10);
  EXPECT_DOUBLE_EQ(result.loss(), 0.5);
  EXPECT_DOUBLE_EQ(result.accuracy(), 0.9);
  EXPECT_DOUBLE_EQ(result.samples_per_second(), 62.5);
  EXPECT_NEAR(result.cost_dollars(), 0.05, 1e-12);
  EXPECT_EQ(result.stream_digest(), "00000000000000030000000000000001");
}

TEST(ResultTest, WhatIsNotKnownIsAbsent) {
  const v1::Result result = BuildResult({});
  EXPECT_FALSE(result.has_steps() || result.has_loss() || result.has_accuracy() ||
               result.has_samples_per_second() || result.has_cost_dollars());
}

TEST(ReportBuilderTest, DigestOfTheWholeJobIsNotAddedUp) {
  const FinishedRun drive(true);
  const insight::Report report = BuildReport(drive.state.record(), drive.Time());
  EXPECT_EQ(report.samples_consumed, 100);
  EXPECT_EQ(report.stream_digest, "0000000000000001ffffffffffffffff");
}

TEST(ReportBuilderTest, InputOnlyRunHasNoTrainingFigures) {
  FinishedRun drive(false);
  JobRecord record = drive.state.record();
  record.input_only = true;
  const insight::Report report = BuildReport(record, drive.Time());
  EXPECT_EQ(report.samples_consumed, 250);
  EXPECT_TRUE(report.stream_digest.has_value());
  EXPECT_FALSE(report.loss || report.accuracy || report.phase_seconds || report.verdict ||
               report.data_wait_percent);
  EXPECT_THAT(report.loss_curve, IsEmpty());
}

TEST(ReportBuilderTest, NothingIsInventedForAJobThatNeverStarted) {
  Drive drive;
  drive.Apply(StopRequested{"Ctrl-C"});
  const insight::Report report = BuildReport(drive.state.record(), drive.Time());
  EXPECT_EQ(report.state, "Stopped");
  EXPECT_EQ(report.message, "Ctrl-C");
  EXPECT_FALSE(report.steps || report.samples_consumed || report.stream_digest || report.loss ||
               report.train_seconds || report.startup_seconds || report.cost_dollars);
}

TEST(ReportBuilderTest, FailureIsTheMessage) {
  Drive drive;
  drive.JoinAll();
  drive.Apply(FailureReported{"big-0", "killed by signal 9"});
  drive.Pass(seconds(3));
  const insight::Report report = BuildReport(drive.state.record(), drive.Time());
  EXPECT_EQ(report.state, "Failed");
  EXPECT_EQ(report.message, "big-0: killed by signal 9");
}

TEST(StatusBuilderTest, CountsReplicasAndNamesTheMissing) {
  Drive drive;
  drive.Hello(20, MakeHello("gpu", 0, 0));
  drive.Hello(10, MakeHello("cpu", 1));
  const v1::JobStatus status = BuildStatus(drive.state.record(), drive.state.plan());
  ASSERT_EQ(status.roles_size(), 3);
  EXPECT_EQ(status.roles(0).name(), "cpu");
  EXPECT_EQ(status.roles(0).desired(), 2);
  EXPECT_EQ(status.roles(0).registered(), 1);
  EXPECT_EQ(status.roles(0).missing(0), "cpu-0");
  EXPECT_EQ(status.roles(1).registered(), 0);  // one of its two ranks is not there
  EXPECT_EQ(status.roles(1).missing(0), "gpu-0.1");
  EXPECT_EQ(status.members_size(), 2);
  EXPECT_EQ(status.verdict(), "");
}

TEST(StatusBuilderTest, RemainingTimeGoesOnAtThePaceSoFar) {
  Drive drive;
  drive.JoinAll();
  drive.Apply(HeartbeatReceived{20, Beat(100, 0, 0, 1)});
  // 30 of 40 steps to go at 0.4 s each.
  EXPECT_DOUBLE_EQ(BuildStatus(drive.state.record(), drive.state.plan()).eta_seconds(), 12);
}

TEST(VerdictTest, LittleWaitingIsComputeBound) {
  Drive drive;
  drive.JoinAll();
  v1::Heartbeat heartbeat = Beat(1, 0, 0, 0);
  heartbeat.mutable_progress()->set_data_wait_percent(9.4);
  drive.Apply(HeartbeatReceived{20, heartbeat});
  EXPECT_EQ(Verdict(drive.state.record()), "compute-bound: 9 % of each step waits for data");
}

}  // namespace
}  // namespace hetero::head
