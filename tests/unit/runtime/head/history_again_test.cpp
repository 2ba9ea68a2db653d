// What a head hears again of what the history of the one before it says already: it counts once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/runtime/head/long_job.h"

namespace hetero::head {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int kWorkers = 200;
constexpr int64_t kBegan = 1'700'000'000'000'000'000;  // the first incarnation, in ns

api::HeteroTrainingJob ManyWorkers() {
  api::HeteroTrainingJob job = MakeJob();
  job.spec.roles[1].replicas = kWorkers;
  job.spec.roles[1].max_replicas = kWorkers;
  return job;
}

class RolesTest : public ::testing::Test {
 protected:
  // All workers join, and have served `seconds_of_each` of a core since their processes began.
  void Workers(int64_t process, int32_t attempt, double seconds_of_each) {
    for (int index = 0; index < kWorkers; ++index) {
      v1::Hello hello = MakeHello("cpu", index, 0, kBegan + process);
      hello.mutable_identity()->set_attempt(attempt);
      hello.set_node("pool-of-workers-" + std::to_string(index));
      job_.Apply(HelloReceived{++stream_, hello});
      job_.Apply(ReadyReceived{stream_, MakeReady(100)});
      v1::Heartbeat heartbeat;
      heartbeat.mutable_counters()->set_cpu_seconds(seconds_of_each);
      heartbeat.mutable_counters()->set_storage_requests(
          static_cast<int64_t>(10 * seconds_of_each));
      job_.Tell(stream_, heartbeat);
    }
  }
  void Ranks(int64_t process, int64_t generation = 0) {
    job_.Join(20, "gpu", 0, kBegan + process, generation);
    job_.Join(21, "gpu", 1, kBegan + process, generation);
    job_.Join(30, "big", 0, kBegan + process, generation);
    v1::Heartbeat heartbeat;
    heartbeat.mutable_progress()->set_step(10);
    heartbeat.mutable_progress()->set_samples_consumed(1000);
    heartbeat.mutable_progress()->set_digest_covers_job(true);
    job_.Tell(20, heartbeat);
  }
  // Of the role, over all processes and heads.
  double CpuSeconds() const { return 1000 * job_.Report().cpu_seconds_per_sample.at("cpu"); }
  // Those of the role, ten for each of these seconds.
  int64_t Requests() const {
    return job_.Report().storage.value_or(insight::ReportStorage()).requests;
  }

  LongJob job_{ManyWorkers()};
  StreamId stream_ = 1000;
};

// 8 KiB name a few of them. The others were added up, and told the same again to each head.
TEST_F(RolesTest, WorkersThatTheHistoryDoesNotNameCountOnceWhateverHeadsCome) {
  Ranks(1);
  Workers(1, 1, 5);
  ASSERT_DOUBLE_EQ(CpuSeconds(), 5 * kWorkers);
  EXPECT_EQ(Requests(), 50 * kWorkers);
  for (int heads = 0; heads < 2; ++heads) {
    job_.ReplaceHead();
    ASSERT_LT(job_.state->record().past.members.size(), size_t{kWorkers}) << "some are not named";
    Ranks(1, 1);
    Workers(1, 1, 5);
    EXPECT_DOUBLE_EQ(CpuSeconds(), 5 * kWorkers);
    EXPECT_EQ(Requests(), 50 * kWorkers);
  }
}

TEST_F(RolesTest, WhatEndedProcessesDidStaysInTheSum) {
  Ranks(1);
  Workers(1, 1, 5);
  Workers(2, 1, 3);  // each was replaced
  ASSERT_DOUBLE_EQ(CpuSeconds(), 8 * kWorkers);
  EXPECT_EQ(Requests(), 80 * kWorkers);
  job_.ReplaceHead();
  Ranks(1, 1);
  Workers(2, 1, 4);
  EXPECT_DOUBLE_EQ(CpuSeconds(), 9 * kWorkers);
  EXPECT_EQ(Requests(), 90 * kWorkers);
}

TEST_F(RolesTest, ANewAttemptAddsWhatTheProcessesOfTheLastHadDone) {
  Ranks(1);
  Workers(1, 1, 5);
  job_.ReplaceHead();
  Ranks(1, 1);
  Workers(1, 1, 6);
  job_.NextAttempt(job_.HistoryText());
  Ranks(3);
  Workers(3, 2, 2);
  EXPECT_DOUBLE_EQ(CpuSeconds(), 8 * kWorkers);
  EXPECT_EQ(Requests(), 80 * kWorkers);
  job_.ReplaceHead();
  Ranks(3, 2);
  Workers(3, 2, 2);
  EXPECT_DOUBLE_EQ(CpuSeconds(), 8 * kWorkers);
  EXPECT_EQ(Requests(), 80 * kWorkers);
}

// A rank tells its faults to each head in full; the history has what there was space for.
TEST(HistoryAgainTest, AFaultThatTheHistoryCutIsOne) {
  LongJob job;
  job.JoinAll();
  v1::Heartbeat heartbeat;
  for (int64_t step = 1; step <= 400; ++step) {
    v1::LossPoint& point = *heartbeat.add_losses();
    point.set_step(step);
    point.set_loss(1.0 / static_cast<double>(step));
    point.set_seconds_per_step(0.1);
  }
  v1::FaultReport& fault = *heartbeat.add_faults();
  fault.set_unix_ns(1'700'000'000'123'456'789);
  fault.set_what("cpu-0 failed " + std::string(600, 'x'));
  v1::FaultReport& same_moment = *heartbeat.add_faults();
  same_moment.set_unix_ns(fault.unix_ns());
  same_moment.set_what("cpu-1 failed " + std::string(600, 'x'));
  job.Tell(20, heartbeat);
  job.Tell(20, heartbeat);
  ASSERT_THAT(job.Report().faults, SizeIs(2));
  job.ReplaceHead();
  ASSERT_LT(job.state->record().faults[0].what.size(), fault.what().size()) << "it was cut";
  job.JoinAll(1, 1);
  job.Tell(20, heartbeat);
  const insight::Report report = job.Report();
  ASSERT_THAT(report.faults, SizeIs(3));
  EXPECT_EQ(report.faults[0].what, fault.what()) << "whole again";
  EXPECT_EQ(report.faults[1].what, same_moment.what());
  EXPECT_THAT(report.faults[2].what, HasSubstr("the head was lost"));
}

// Each head found it out, and entered it.
TEST(HistoryAgainTest, AWorkerWithOtherDataIsOneFaultForAllHeads) {
  LongJob job;
  job.JoinAll();
  const auto join = [&job] {
    job.Apply(HelloReceived{11, MakeHello("cpu", 1)});
    job.Apply(ReadyReceived{11, MakeReady(99)});
  };
  join();
  ASSERT_THAT(job.Report().faults, SizeIs(1));
  for (int heads = 0; heads < 3; ++heads) {
    job.ReplaceHead();
    job.JoinAll(1, 1);
    join();
  }
  int told = 0;
  for (const insight::ReportFault& fault : job.Report().faults) {
    told += fault.what.find("does not see the job's data") != std::string::npos;
  }
  EXPECT_EQ(told, 1);
}

// An attempt began a nanosecond before the one before it had ended, and the next head threw the
// whole history away.
TEST(HistoryAgainTest, WhateverTheClocksSayTheNextHeadBelievesThisOne) {
  for (int i = 1; i <= 1000; ++i) {
    LongJob job;
    job.JoinAll();
    job.elapsed += seconds(i) + nanoseconds(int64_t{123'456'789} * i % 1'000'000'007);
    job.clock_step = -std::chrono::hours(2);
    for (int32_t attempt = 2; attempt <= 3; ++attempt) {
      const std::string text = job.HistoryText();
      const auto history = DecodeHistory(text, "run", attempt);
      ASSERT_TRUE(history.ok()) << i << ": " << history.status();
      ASSERT_EQ(history->attempts_size(), attempt - 1);
      job.NextAttempt(text);
      for (const insight::ReportAttempt& one : job.Report().attempts) {
        ASSERT_GE(one.seconds, 0) << i;
      }
    }
    ASSERT_TRUE(DecodeHistory(job.HistoryText(), "run", 3).ok()) << i;
  }
}

}  // namespace
}  // namespace hetero::head
