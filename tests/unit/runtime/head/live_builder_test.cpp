#include "runtime/head/live_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/head/status_builder.h"
#include "tests/unit/runtime/head/job_fixture.h"

namespace hetero::head {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

live::Snapshot Look(LiveBuilder& builder, const Drive& drive) {
  const v1::JobStatus status = BuildStatus(drive.state.record(), drive.state.plan());
  return builder.Build(drive.state.record(), status, drive.Time());
}

const live::Member& Of(const live::Snapshot& snapshot, const std::string& name) {
  static const live::Member kNone;
  for (const live::Member& member : snapshot.members) {
    if (member.name == name) return member;
  }
  ADD_FAILURE() << "no member " << name;
  return kNone;
}

v1::Heartbeat Made(int64_t samples) {
  v1::Heartbeat beat;
  beat.mutable_counters()->set_samples(samples);
  return beat;
}

// A point of half a second that ends now, of a process that may use eight cores.
v1::Heartbeat Used(const Drive& drive, double busy_cores, std::optional<double> gpu = {}) {
  const int64_t now =
      std::chrono::duration_cast<std::chrono::nanoseconds>(drive.Time().wall.time_since_epoch())
          .count();
  v1::Heartbeat beat;
  beat.set_sent_unix_ns(now);
  v1::ResourcePoint& point = *beat.add_resources();
  point.set_unix_ns(now);
  point.set_seconds(0.5);
  point.set_cores(8);
  point.set_core_busy(std::string("\x10\xf0", 2));
  point.set_rss_bytes(int64_t{3} << 30);
  point.set_run_queue_seconds(1);
  point.set_received_bytes(500);
  v1::ThreadGroupUse& group = *point.add_groups();
  group.set_group("pipeline");
  group.set_cpu_seconds(busy_cores / 2);
  if (gpu) {
    v1::GpuUse& use = *point.add_gpus();
    use.set_utilization(*gpu);
  }
  return beat;
}

TEST(LiveBuilder, BeforeAnybodyIsThereItSaysWhoIsMissing) {
  Drive drive;
  LiveBuilder builder;
  const live::Snapshot snapshot = Look(builder, drive);
  EXPECT_EQ(snapshot.job, "blur");
  EXPECT_EQ(snapshot.state, "Waiting");
  EXPECT_FALSE(snapshot.over);
  EXPECT_THAT(snapshot.message, HasSubstr("cpu 0 of 2 (missing cpu-0, cpu-1)"));
  EXPECT_TRUE(snapshot.members.empty());
  EXPECT_FALSE(snapshot.samples_per_second);
  EXPECT_FALSE(snapshot.dollars);
}

TEST(LiveBuilder, MembersKeepTheirSlotWhoeverComesLater) {
  Drive drive;
  LiveBuilder builder;
  drive.Hello(20, MakeHello("gpu", 0, 0));
  EXPECT_EQ(Of(Look(builder, drive), "gpu-0.0").slot, 0);
  drive.Hello(10, MakeHello("cpu", 0));
  const live::Snapshot snapshot = Look(builder, drive);
  EXPECT_EQ(Of(snapshot, "gpu-0.0").slot, 0);
  EXPECT_EQ(Of(snapshot, "cpu-0").slot, 1);
  EXPECT_TRUE(Of(snapshot, "gpu-0.0").rank);
  EXPECT_FALSE(Of(snapshot, "cpu-0").rank);
}

TEST(LiveBuilder, ARateIsWhatAMemberMadeInTheLastSeconds) {
  Drive drive;
  LiveBuilder builder;
  drive.JoinAll();
  for (int second = 0; second <= 20; ++second) {
    drive.Apply(HeartbeatReceived{10, Made(second < 10 ? second * 1000 : 9000 + second * 50)});
    Look(builder, drive);
    drive.Pass(std::chrono::seconds(1), {20, 21, 30});
  }
  // In the last five seconds fifty a second, whatever it did before.
  EXPECT_NEAR(Of(Look(builder, drive), "cpu-0").samples_per_second.value_or(0), 45, 10);
}

TEST(LiveBuilder, AReplacedProcessHasNoNegativeRate) {
  Drive drive;
  LiveBuilder builder;
  drive.JoinAll();
  drive.Apply(HeartbeatReceived{10, Made(5000)});
  Look(builder, drive);
  drive.Apply(ProcessEnded{.member = "cpu-0", .incarnation = 1, .message = "killed"});
  drive.Hello(11, MakeHello("cpu", 0, 0, 2));
  drive.Pass(std::chrono::seconds(1), {11, 20, 21, 30});
  const live::Snapshot snapshot = Look(builder, drive);
  EXPECT_GE(Of(snapshot, "cpu-0").samples_per_second.value_or(0), 0);
  EXPECT_EQ(Of(snapshot, "cpu-0").restarts, 1);
  ASSERT_FALSE(snapshot.events.empty());
  EXPECT_EQ(snapshot.events.back().kind, "Fault");
  EXPECT_EQ(snapshot.events.back().member, "cpu-0");
}

TEST(LiveBuilder, UseOfNowIsTheMeanOfTheLastPointsAndGoesWhenTheyStop) {
  Drive drive;
  LiveBuilder builder;
  drive.JoinAll();
  for (const double busy : {2.0, 4.0, 4.0, 6.0, 6.0}) {
    drive.Pass(std::chrono::milliseconds(500), {10, 21, 30});
    drive.Apply(HeartbeatReceived{20, Used(drive, busy, 0.5)});
  }
  const live::Member now = Of(Look(builder, drive), "gpu-0.0");
  EXPECT_DOUBLE_EQ(now.busy_cores.value_or(0), 5);
  EXPECT_EQ(now.cores, 8);
  EXPECT_EQ(now.gpu, 0.5);
  EXPECT_EQ(now.rss_bytes, int64_t{3} << 30);
  EXPECT_DOUBLE_EQ(now.queued_threads.value_or(0), 2);
  EXPECT_DOUBLE_EQ(now.bytes_per_second.value_or(0), 1000);
  EXPECT_FALSE(Of(Look(builder, drive), "cpu-0").busy_cores);
  drive.Pass(std::chrono::seconds(11), {10, 20, 21, 30});
  EXPECT_FALSE(Of(Look(builder, drive), "gpu-0.0").busy_cores);
}

TEST(LiveBuilder, HeatHasAColumnForTwoSecondsAndACharacterForEachSlot) {
  Drive drive;
  LiveBuilder builder;
  drive.JoinAll();
  Look(builder, drive);
  for (int half = 0; half < 20; ++half) {
    drive.Pass(std::chrono::milliseconds(500), {21, 30});
    drive.Apply(HeartbeatReceived{10, Used(drive, half < 12 ? 8 : 0)});
    drive.Apply(HeartbeatReceived{20, Used(drive, 4, half < 12 ? 1 : 0)});
  }
  const live::Snapshot snapshot = Look(builder, drive);
  const auto cpu = static_cast<size_t>(Of(snapshot, "cpu-0").slot);
  const auto gpu = static_cast<size_t>(Of(snapshot, "gpu-0.0").slot);
  ASSERT_EQ(snapshot.heat.columns.size(), 5);
  std::string row, of_gpus;
  for (const auto& [at, column] : snapshot.heat.columns) row.push_back(column.at(cpu));
  for (const auto& [at, column] : snapshot.heat.gpus) of_gpus.push_back(column.at(gpu));
  EXPECT_EQ(row, "ooo00");
  EXPECT_EQ(of_gpus, "ooo00");
  EXPECT_EQ(snapshot.heat.gpus.begin()->second.at(cpu), ' ');
}

// What a viewer is told once a second must not grow with the length of a job.
TEST(LiveBuilder, OldColumnsGo) {
  Drive drive;
  LiveBuilder builder;
  drive.JoinAll();
  for (int second = 0; second < 200; ++second) {
    drive.Pass(std::chrono::seconds(1), {20, 21, 30});
    drive.Apply(HeartbeatReceived{10, Used(drive, 8)});
    Look(builder, drive);
  }
  EXPECT_EQ(Look(builder, drive).heat.columns.size(),
            static_cast<size_t>(LiveBuilder::kHeatColumns));
}

TEST(LiveBuilder, AJobThatWasStoppedIsOverAndSaysWhy) {
  Drive drive;
  LiveBuilder builder;
  drive.JoinAll();
  drive.Apply(StopRequested{"stopped by the user", ""});
  for (const StreamId stream : {10, 20, 21, 30}) drive.Finish(stream, true, true);
  drive.Pass(std::chrono::seconds(5));
  const live::Snapshot snapshot = Look(builder, drive);
  EXPECT_EQ(snapshot.state, "Stopped");
  EXPECT_TRUE(snapshot.over);
  EXPECT_EQ(snapshot.message, "stopped by the user");
  EXPECT_EQ(Of(snapshot, "cpu-0").state, "Finished");
}

TEST(LiveBuilder, LogAndFindingsAreShown) {
  Drive drive;
  LiveBuilder builder;
  drive.JoinAll();
  v1::Heartbeat beat;
  beat.add_log_lines()->set_text("a line");
  drive.Apply(HeartbeatReceived{10, beat});
  v1::JobStatus status = BuildStatus(drive.state.record(), drive.state.plan());
  v1::Finding& finding = *status.add_findings();
  finding.set_rule("SlowWorker");
  finding.set_member("cpu-0");
  finding.set_dollars(0.5);
  const live::Snapshot snapshot = builder.Build(drive.state.record(), status, drive.Time());
  ASSERT_EQ(snapshot.log.size(), 1);
  EXPECT_EQ(snapshot.log[0].member, "cpu-0");
  EXPECT_EQ(snapshot.log[0].text, "a line");
  ASSERT_EQ(snapshot.findings.size(), 1);
  EXPECT_EQ(snapshot.findings[0].rule, "SlowWorker");
  EXPECT_EQ(snapshot.findings[0].dollars, 0.5);
  EXPECT_FALSE(snapshot.findings[0].active);
}

TEST(MemberDetail, IsOfOneMemberAndOfWhatIsNew) {
  Drive drive;
  drive.JoinAll();
  for (int half = 0; half < 8; ++half) {
    drive.Pass(std::chrono::milliseconds(500), {21, 30});
    drive.Apply(HeartbeatReceived{10, Used(drive, 4)});
  }
  const auto all = BuildMemberDetail(drive.state.record(), "cpu-0", false, 0, drive.Time());
  ASSERT_TRUE(all);
  ASSERT_EQ(all->columns.size(), 8);
  EXPECT_EQ(all->columns[0].cores, std::string("\x10\xf0", 2));
  EXPECT_THAT(all->groups, ::testing::Contains("pipeline"));
  const double after = all->columns[5].seconds;
  const auto fresh = BuildMemberDetail(drive.state.record(), "cpu-0", false, after, drive.Time());
  ASSERT_EQ(fresh->columns.size(), 2);
  EXPECT_GT(fresh->columns[0].seconds, after);
  EXPECT_FALSE(BuildMemberDetail(drive.state.record(), "cpu-9", false, 0, drive.Time()));
}

}  // namespace
}  // namespace hetero::head
