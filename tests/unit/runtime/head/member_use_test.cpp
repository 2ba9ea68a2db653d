#include "runtime/head/member_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/head/heartbeat_buffer.h"
#include "runtime/head/report_builder.h"
#include "runtime/head/resource_point.h"
#include "runtime/insight/report.h"
#include "tests/unit/runtime/head/job_fixture.h"

namespace hetero::head {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kJobBegan = 1'700'000'000 * kSecond;  // of the job, by the head's clock
constexpr double kNever = std::numeric_limits<double>::quiet_NaN();

v1::ResourcePoint Point(double end, double seconds, double pipeline, double other = 0) {
  v1::ResourcePoint point;
  point.set_unix_ns(kJobBegan + std::llround(end * 1e9));
  point.set_seconds(seconds);
  for (const auto& [name, cpu] : {std::pair("pipeline", pipeline), std::pair("news", other)}) {
    v1::ThreadGroupUse* group = point.add_groups();
    group->set_group(name);
    group->set_cpu_seconds(cpu);
    group->set_threads(2);
  }
  point.set_run_queue_seconds(0.125);
  point.set_rss_bytes(std::llround(1000 * end));
  point.set_cores(4);
  return point;
}

MemberUse::Heard HeardAt(double seconds, bool rank = true) {
  return {.unix_ns = kJobBegan + std::llround(seconds * 1e9),
          .job_seconds = seconds,
          .tells_lives = rank};
}

v1::Heartbeat Sent(double seconds) {
  v1::Heartbeat heartbeat;
  heartbeat.set_sent_unix_ns(kJobBegan + std::llround(seconds * 1e9));
  return heartbeat;
}

v1::BatchLife Life(int64_t ticket, double queued = 0.001) {
  v1::BatchLife life;
  life.set_ticket(ticket);
  life.set_step(ticket + 1);
  life.set_worker("cpu-0");
  life.set_asked_unix_ns(kJobBegan + ticket);
  life.set_queued_seconds(queued);
  life.set_work_seconds(0.5);
  return life;
}

double Pipeline(const insight::SecondsByGroup& seconds) {
  return seconds[static_cast<size_t>(insight::ThreadGroup::kPipeline)];
}

TEST(MemberUseTest, KeepsPointsSumsAndWhatIsNew) {
  MemberUse use;
  EXPECT_TRUE(use.empty());
  for (int beat = 1; beat <= 1000; ++beat) {
    v1::Heartbeat heartbeat = Sent(beat);
    *heartbeat.add_resources() = Point(beat - 0.5, 0.5, 0.25, 0.125);
    *heartbeat.add_resources() = Point(beat, 0.5, 0.5);
    use.Take(heartbeat, HeardAt(beat + 0.25));
  }
  EXPECT_EQ(use.recent().size(), MemberUse::kRecentPoints);
  EXPECT_DOUBLE_EQ(use.recent().back().seconds, 1000.25) << "as old as it was when it was sent";
  EXPECT_DOUBLE_EQ(use.recent().front().span, 0.5);
  EXPECT_LT(use.whole().points().size(), insight::UseSeries::kMost);
  EXPECT_NEAR(use.totals().seconds, 1000, 1e-6);
  EXPECT_NEAR(Pipeline(use.totals().cpu_seconds), 750, 1e-6);
  EXPECT_NEAR(insight::Sum(use.totals().cpu_seconds), 875, 1e-6) << "unknown groups are `other`";
  EXPECT_NEAR(use.totals().run_queue_seconds, 250, 1e-6);
  EXPECT_EQ(use.totals().peak_rss_bytes, 1'000'000);
  EXPECT_NEAR(use.busy_cores().Quantile(0.25), 0.75, 0.04);
  EXPECT_NEAR(use.busy_cores().Quantile(0.95), 1, 0.05);
  EXPECT_EQ(use.left_out(), 0);
  EXPECT_FALSE(use.totals().throttled_seconds.has_value());
}

// The clock of the member is 100 s ahead; messages take 0.05 s, some longer.
TEST(MemberUseTest, ClocksThatDifferMoveNoPoint) {
  MemberUse use;
  EXPECT_FALSE(use.clock_offset_seconds().has_value());
  for (int beat = 1; beat <= 100; ++beat) {
    v1::Heartbeat heartbeat = Sent(100 + beat);
    *heartbeat.add_resources() = Point(100 + beat - 0.25, 0.5, 0.25);
    use.Take(heartbeat, HeardAt(beat + (beat % 10 == 3 ? 0.05 : 0.75)));
  }
  EXPECT_NEAR(use.clock_offset_seconds().value(), 99.95, 1e-6);
  EXPECT_NEAR(use.recent().back().seconds, 100.5, 1e-6);
  use.OnProcessReplaced();
  EXPECT_FALSE(use.clock_offset_seconds().has_value());
}

// What a stream that broke may have lost is told again, in part as longer points.
TEST(MemberUseTest, WhatIsToldAgainCountsOnceForAnOldHeadAndWhollyForANewOne) {
  MemberUse old_head, new_head;
  HeartbeatBuffer buffer;
  double cpu = 0;
  for (int beat = 1; beat <= 3000; ++beat) {
    v1::Heartbeat heartbeat = Sent(beat);
    const double used = 0.001 * (beat % 11);
    *heartbeat.add_resources() = Point(beat, 1, used);
    *heartbeat.add_lives() = Life(beat);
    cpu += used;
    if (beat == 1000 || beat == 2500) {
      old_head.Take(buffer.Merge(heartbeat), HeardAt(beat));
    } else if (beat < 2490 || beat > 2500) {  // those were lost
      old_head.Take(heartbeat, HeardAt(beat));
    }
    buffer.Add(heartbeat);
  }
  v1::Heartbeat all = buffer.Merge({});
  all.set_sent_unix_ns(kJobBegan + 3000 * kSecond);
  new_head.Take(all, HeardAt(3000));
  for (const MemberUse* use : {&old_head, &new_head}) {
    EXPECT_NEAR(Pipeline(use->totals().cpu_seconds), cpu, 1e-6);
    EXPECT_NEAR(use->totals().seconds, 3000, 1e-6);
    EXPECT_EQ(use->lives().size(), MemberUse::kRecentLives);
    EXPECT_EQ(use->lives().back().ticket(), 3000);
    EXPECT_EQ(use->left_out(), 0);
  }
}

TEST(MemberUseTest, AnotherProcessGoesOnWhereItsClockStands) {
  MemberUse use;
  v1::Heartbeat heartbeat = Sent(10);
  *heartbeat.add_resources() = Point(10, 1, 0.5);
  heartbeat.mutable_life_histograms()->mutable_work()->add_bucket(0);
  heartbeat.mutable_life_histograms()->mutable_work()->add_count(3);
  heartbeat.mutable_life_histograms()->mutable_whole_step()->add_bucket(8);
  heartbeat.mutable_life_histograms()->mutable_whole_step()->add_count(30);
  use.Take(heartbeat, HeardAt(10));
  use.Take(heartbeat, HeardAt(11));  // totals: no more of them
  use.OnProcessReplaced();
  v1::Heartbeat other = Sent(2);  // on another machine, whose clock is behind
  *other.add_resources() = Point(2, 1, 0.25);
  *other.mutable_life_histograms() = heartbeat.life_histograms();
  use.Take(other, HeardAt(20));
  EXPECT_DOUBLE_EQ(Pipeline(use.totals().cpu_seconds), 0.75);
  EXPECT_EQ(use.recent().size(), 2u);
  EXPECT_DOUBLE_EQ(use.recent().back().seconds, 20);
  EXPECT_EQ(use.LifeSeconds(LifeSpan::kWork).count(), 6);
  EXPECT_EQ(use.StepSeconds().count(), 60);
  EXPECT_NEAR(use.StepSeconds().Quantile(0.5), 2, 0.1);
}

TEST(MemberUseTest, LivesAreARanksAlone) {
  v1::Heartbeat heartbeat = Sent(1);
  *heartbeat.add_lives() = Life(1);
  heartbeat.mutable_life_histograms()->mutable_work()->add_bucket(0);
  heartbeat.mutable_life_histograms()->mutable_work()->add_count(3);
  MemberUse worker;
  worker.Take(heartbeat, HeardAt(1, /*rank=*/false));
  EXPECT_TRUE(worker.empty());
  EXPECT_EQ(worker.LifeSeconds(LifeSpan::kWork).count(), 0);
}

// Whoever was taken over may tell anything, and no sum may suffer.
TEST(MemberUseTest, WhatCannotBeIsLeftOutAndCounted) {
  const auto with = [](auto change) {
    v1::ResourcePoint point = Point(1, 0.5, 0.25);
    change(point);
    return point;
  };
  const std::vector<v1::ResourcePoint> wrong = {
      with([](auto& p) { p.set_seconds(-1); }),
      with([](auto& p) { p.set_seconds(0); }),
      with([](auto& p) { p.set_seconds(kNever); }),
      with([](auto& p) { p.set_unix_ns(-5); }),
      with([](auto& p) { p.mutable_groups(0)->set_cpu_seconds(kNever); }),
      with([](auto& p) { p.mutable_groups(0)->set_cpu_seconds(-1); }),
      with([](auto& p) { p.mutable_groups(0)->set_cpu_seconds(1e300); }),
      with([](auto& p) { p.mutable_groups(0)->set_threads(-1); }),
      with([](auto& p) {
        for (int i = 0; i < 1000; ++i) p.add_groups()->set_group("x");
      }),
      with([](auto& p) { p.set_rss_bytes(std::numeric_limits<int64_t>::min()); }),
      with([](auto& p) { p.set_received_bytes(std::numeric_limits<int64_t>::max()); }),
      with([](auto& p) { p.set_io_pressure(1.5); }),
      with([](auto& p) { p.set_throttled_seconds(kNever); }),
      with([](auto& p) { p.set_core_busy(std::string(kMostCores + 1, 'x')); }),
      with([](auto& p) { p.add_gpus()->set_utilization(kNever); }),
      with([](auto& p) {
        for (int i = 0; i <= kMostGpus; ++i) p.add_gpus();
      }),
      with([](auto& p) { p.set_machine_busy_cores(-3); })};
  MemberUse use;
  v1::Heartbeat heartbeat = Sent(1);
  for (const v1::ResourcePoint& point : wrong) *heartbeat.add_resources() = point;
  use.Take(heartbeat, HeardAt(1));
  EXPECT_TRUE(use.recent().empty());
  EXPECT_EQ(use.left_out(), static_cast<int64_t>(wrong.size()));

  v1::Heartbeat lives = Sent(1);
  *lives.add_lives() = Life(1, -0.5);
  *lives.add_lives() = Life(2, kNever);
  *lives.add_lives() = Life(3);
  lives.mutable_lives(2)->set_worker(std::string(100'000, 'w'));
  *lives.add_lives() = Life(-4);
  use.Take(lives, HeardAt(1));
  EXPECT_TRUE(use.lives().empty());
  EXPECT_EQ(use.left_out(), static_cast<int64_t>(wrong.size()) + 4);

  v1::Heartbeat histograms = Sent(1);
  v1::LifeHistograms& told = *histograms.mutable_life_histograms();
  told.mutable_work()->add_bucket(1);  // without its count
  use.Take(histograms, HeardAt(1));
  EXPECT_EQ(use.left_out(), static_cast<int64_t>(wrong.size()) + 5);
  told.mutable_work()->add_count(-7);
  for (int i = 0; i < 300; ++i) told.mutable_step()->add_bucket(1'000'000 + i);
  for (int i = 0; i < 300; ++i) told.mutable_step()->add_count(std::numeric_limits<int64_t>::max());
  use.Take(histograms, HeardAt(1));
  EXPECT_EQ(use.LifeSeconds(LifeSpan::kWork).count(), 0);
  EXPECT_LE(use.LifeSeconds(LifeSpan::kStep).buckets().size(), 1u);
}

TEST(MemberUseTest, ListsThatAreTooLongEndEarly) {
  MemberUse use;
  v1::Heartbeat heartbeat = Sent(10'000);
  for (int i = 1; i <= 2000; ++i) *heartbeat.add_resources() = Point(i, 0.5, 0.25);
  for (int i = 1; i <= 2000; ++i) *heartbeat.add_lives() = Life(i);
  use.Take(heartbeat, HeardAt(10'000));
  EXPECT_EQ(use.left_out(), 2 * 2000 - MemberUse::kMostPointsTold - MemberUse::kMostLivesTold);
  EXPECT_NEAR(use.totals().seconds, 0.5 * MemberUse::kMostPointsTold, 1e-9);
}

TEST(ResourcePointTest, GoesOverTheWireAsItIs) {
  insight::UsePoint point;
  point.unix_ns = kJobBegan;
  point.span = 0.5;
  point.cpu_seconds = {0.25, 0, 0.125};
  point.busiest_thread_seconds = {0.125, 0, 0.125};
  point.threads = {2, 1, 1};
  point.throttled_seconds = 0.25;
  point.memory_pressure = 0.5;
  point.core_busy = std::string("\0\xff", 2);
  point.cores = 2;
  point.machine_busy_cores = 1.5;
  point.gpus = {{.index = 3, .utilization = 0.5, .memory_used_bytes = 7, .power_watts = 70}};
  v1::ResourcePoint told;
  WritePoint(point, &told);
  const std::optional<insight::UsePoint> read = ReadPoint(told);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->unix_ns, kJobBegan);
  EXPECT_EQ(read->cpu_seconds, point.cpu_seconds);
  EXPECT_EQ(read->busiest_thread_seconds, point.busiest_thread_seconds);
  EXPECT_EQ(read->threads, point.threads);
  EXPECT_EQ(read->throttled_seconds, 0.25);
  EXPECT_FALSE(read->cpu_pressure.has_value());
  EXPECT_EQ(read->memory_pressure, 0.5);
  EXPECT_EQ(read->core_busy, point.core_busy);
  ASSERT_EQ(read->gpus.size(), 1u);
  EXPECT_EQ(read->gpus[0].index, 3);
  EXPECT_EQ(read->gpus[0].power_watts, 70);
}

// From the heartbeat to the report.
TEST(MemberUseTest, TheReportSumsMembersAndMergesRanks) {
  Drive drive;
  drive.JoinAll();
  drive.elapsed += std::chrono::seconds(100);
  for (int i = 0; i < 200; ++i) {
    drive.elapsed += std::chrono::milliseconds(500);
    v1::Heartbeat worker;
    worker.set_sent_unix_ns(kJobBegan + drive.elapsed.count());
    v1::ResourcePoint point = Point(0, 0.5, 0.75);
    point.set_unix_ns(kJobBegan + drive.elapsed.count());
    *worker.add_resources() = point;
    *worker.add_lives() = Life(i);  // which is none of its business
    drive.Apply(HeartbeatReceived{10, worker});
  }
  for (const StreamId stream : {20, 21}) {
    v1::Heartbeat rank = Sent(200);
    rank.mutable_life_histograms()->mutable_work()->add_bucket(stream == 20 ? 0 : 16);
    rank.mutable_life_histograms()->mutable_work()->add_count(10);
    rank.mutable_life_histograms()->mutable_whole_step()->add_bucket(0);
    rank.mutable_life_histograms()->mutable_whole_step()->add_count(1000);
    drive.Apply(HeartbeatReceived{stream, rank});
  }
  const insight::Report report = BuildReport(drive.state.record(), drive.Time());
  ASSERT_EQ(report.resources.size(), 1u);
  const insight::ReportResources& resources = report.resources.front();
  EXPECT_EQ(resources.member, "cpu-0");
  EXPECT_NEAR(Pipeline(resources.cpu_seconds), 150, 1e-6);
  EXPECT_NEAR(resources.seconds, 100, 1e-6);
  EXPECT_NEAR(resources.busy_cores_median, 1.5, 0.08);
  EXPECT_LE(resources.time_line.size(), insight::ReportResources::kMostPoints);
  EXPECT_NEAR(resources.time_line.back().seconds, 200, 1e-6);
  EXPECT_FALSE(resources.gpu_utilization.has_value());
  ASSERT_EQ(report.batch_lives.size(), 2u);
  EXPECT_EQ(report.batch_lives[0].span, "work");
  EXPECT_EQ(report.batch_lives[0].count, 20);
  EXPECT_NEAR(report.batch_lives[0].p50, 1, 0.05);
  EXPECT_NEAR(report.batch_lives[0].p95, 4, 0.2);
  EXPECT_EQ(report.batch_lives[1].span, "wholeStep");
  EXPECT_EQ(report.batch_lives[1].count, 2000);
}

}  // namespace
}  // namespace hetero::head
