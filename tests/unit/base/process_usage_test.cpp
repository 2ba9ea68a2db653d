#include "base/process_usage.h"

#include <gtest/gtest.h>

#include <ctime>
#include <thread>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace hetero::base {
namespace {

TEST(ProcessUsageTest, CountsCpuTimeOfThisProcess) {
  const double before = ReadProcessUsage().cpu_seconds;
  const std::clock_t start = std::clock();
  while (std::clock() - start < CLOCKS_PER_SEC / 20) {
  }
  EXPECT_GE(ReadProcessUsage().cpu_seconds - before, 0.04);
}

TEST(ProcessUsageTest, SeesMemoryBeingTouched) {
  const ProcessUsage before = ReadProcessUsage();
  EXPECT_GT(before.resident_bytes, 0);
  EXPECT_GE(before.peak_resident_bytes, before.resident_bytes);
  std::vector<char> block(64 << 20, 1);
  const ProcessUsage after = ReadProcessUsage();
  EXPECT_GE(after.resident_bytes, before.resident_bytes + (60 << 20));
  block = {};
  EXPECT_GE(ReadProcessUsage().peak_resident_bytes, after.resident_bytes - (1 << 20));
}

TEST(CgroupTest, Version2TakesTheTightestGroupOnTheWay) {
  const testing::TemporaryFolder root;
  root.Write("proc/self/cgroup", "0::/pod/container\n");
  root.Write("sys/fs/cgroup/pod/container/cpu.max", "400000 100000\n");
  root.Write("sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
  root.Write("sys/fs/cgroup/pod/container/memory.max", "max\n");
  root.Write("sys/fs/cgroup/pod/memory.max", "1073741824\n");
  EXPECT_EQ(CgroupCpuQuota(root.path()), 1.5);
  EXPECT_EQ(CgroupMemoryLimit(root.path()), 1 << 30);
  EXPECT_LE(UsableCores(root.path()), 2);
}

TEST(CgroupTest, Version1FindsItsController) {
  const testing::TemporaryFolder root;
  root.Write("proc/self/cgroup", "3:memory:/m\n2:cpu,cpuacct:/c\n1:cpuset:/s\n");
  root.Write("sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "50000\n");
  root.Write("sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n");
  root.Write("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(CgroupCpuQuota(root.path()), 0.5);
  EXPECT_EQ(CgroupMemoryLimit(root.path()), std::nullopt);
  EXPECT_EQ(UsableCores(root.path()), 1);
}

TEST(CgroupTest, HostPathInsideAContainerFallsBackToTheMount) {
  const testing::TemporaryFolder root;
  root.Write("proc/self/cgroup", "0::/../../kubepods/pod1/container\n");
  root.Write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(CgroupCpuQuota(root.path()), 2);
}

TEST(CgroupTest, NoLimitLeavesTheCores) {
  const testing::TemporaryFolder root;
  EXPECT_EQ(CgroupCpuQuota(root.path()), std::nullopt);
  root.Write("proc/self/cgroup", "4:cpu:/c\n0::/c\n");
  root.Write("sys/fs/cgroup/c/cpu.max", "max 100000\n");
  root.Write("sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "-1\n");
  root.Write("sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpuQuota(root.path()), std::nullopt);
  EXPECT_GE(UsableCores(root.path()), 1);
  EXPECT_LE(UsableCores(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace hetero::base
