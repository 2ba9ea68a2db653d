#include "runtime/process/resource_sampler.h"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "base/fake_clock.h"
#include "base/process_usage.h"
#include "base/thread.h"

namespace hetero::process {
namespace {

using std::chrono::milliseconds;

double CpuSeconds(const v1::Heartbeat& heartbeat, const std::string& group = "") {
  double sum = 0;
  for (const v1::ResourcePoint& point : heartbeat.resources()) {
    for (const v1::ThreadGroupUse& use : point.groups()) {
      if (group.empty() || use.group() == group) sum += use.cpu_seconds();
    }
  }
  return sum;
}

// Against getrusage: all that this process ever used, and what a named thread did in between.
TEST(ResourceSamplerTest, TellsWhatThisProcessUsed) {
  ResourceSampler sampler({.interval = milliseconds(20)}, base::Clock::Real());
  std::latch burnt(1), end(1);
  const std::jthread busy([&] {
    base::SetThreadName("make-test");
    const base::Duration until = base::ThreadCpuTime() + milliseconds(300);
    while (base::ThreadCpuTime() < until) {
    }
    burnt.count_down();
    end.wait();
  });
  burnt.wait();
  v1::Heartbeat heartbeat;
  sampler.Take(/*until_now=*/true, heartbeat);
  end.count_down();
  const double used = base::ReadProcessUsage().cpu_seconds;
  EXPECT_NEAR(CpuSeconds(heartbeat), used, 0.05 + 0.02 * used);
  EXPECT_GT(CpuSeconds(heartbeat, "pipeline"), 0.29);
  int64_t before = 0;
  for (const v1::ResourcePoint& point : heartbeat.resources()) {
    EXPECT_GT(point.unix_ns(), before);
    EXPECT_GT(point.seconds(), 0);
    EXPECT_GT(point.rss_bytes(), 0);
    before = point.unix_ns();
  }
  EXPECT_GE(heartbeat.resources_size(), 2);
  EXPECT_EQ(heartbeat.resources(0).gpus_size(), 0) << "it was not asked for them";
}

TEST(ResourceSamplerTest, EachPointIsTakenOnce) {
  base::FakeClock clock;
  ResourceSampler sampler({}, clock);
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(clock.WaitForSleepers(1));
    clock.Advance(milliseconds(500));
  }
  ASSERT_TRUE(clock.WaitForSleepers(1));
  v1::Heartbeat first, second, last;
  sampler.Take(false, first);
  EXPECT_EQ(first.resources_size(), 7);
  EXPECT_DOUBLE_EQ(first.resources(3).seconds(), 0.5);
  sampler.Take(false, second);
  EXPECT_EQ(second.resources_size(), 0);
  clock.Advance(milliseconds(100));
  sampler.Take(true, last);
  ASSERT_EQ(last.resources_size(), 1);
  EXPECT_DOUBLE_EQ(last.resources(0).seconds(), 0.1);
}

TEST(ResourceSamplerTest, WithoutAHeadPointsBecomeLongerAndNoMore) {
  base::FakeClock clock;
  ResourceSampler sampler({}, clock);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(clock.WaitForSleepers(1));
    clock.Advance(milliseconds(500));
  }
  ASSERT_TRUE(clock.WaitForSleepers(1));
  v1::Heartbeat heartbeat;
  sampler.Take(false, heartbeat);
  EXPECT_LT(heartbeat.resources_size(), static_cast<int>(ResourceSampler::kMostPoints));
  double covered = 0;
  for (const v1::ResourcePoint& point : heartbeat.resources()) covered += point.seconds();
  EXPECT_GE(covered, 500);
  const double used = base::ReadProcessUsage().cpu_seconds;
  EXPECT_NEAR(CpuSeconds(heartbeat), used, 0.05 + 0.02 * used);
}

TEST(ResourceSamplerTest, GpusAreReadWhereThereIsADriver) {
  base::FakeClock clock;
  ResourceSampler sampler({.reads_gpus = true, .nvml = HETERO_FAKE_NVML}, clock);
  ASSERT_TRUE(clock.WaitForSleepers(1));
  v1::Heartbeat heartbeat;
  sampler.Take(false, heartbeat);
  const std::unique_ptr<GpuReadings> readings = GpuReadings::Open(HETERO_FAKE_NVML);
  ASSERT_NE(readings, nullptr);
  const std::vector<GpuReading> expected = readings->Take();
  ASSERT_EQ(heartbeat.resources(0).gpus_size(), static_cast<int>(expected.size()));
  ASSERT_GT(expected.size(), 0u);
  EXPECT_EQ(heartbeat.resources(0).gpus(0).utilization(), expected[0].utilization);
  EXPECT_EQ(heartbeat.resources(0).gpus(0).memory_total_bytes(), expected[0].memory_total_bytes);
}

}  // namespace
}  // namespace hetero::process
