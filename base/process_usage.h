#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace hetero::base {

// What this process has used so far. Reading it takes microseconds; safe from any thread.
struct ProcessUsage {
  double cpu_seconds = 0;  // user and system, all threads, living and ended
  int64_t resident_bytes = 0;
  int64_t peak_resident_bytes = 0;
};
ProcessUsage ReadProcessUsage();

// Cores' worth of CPU time that the cgroup of this process may use: the tightest quota (cgroup v2
// cpu.max or v1 cpu.cfs_quota_us) on the way to the root. Empty without a quota. `root` replaces
// "/" in front of proc/self/cgroup and sys/fs/cgroup.
std::optional<double> CgroupCpuQuota(const std::filesystem::path& root = "/");

// Bytes of memory that the cgroup may use; empty when unlimited. As above.
std::optional<int64_t> CgroupMemoryLimit(const std::filesystem::path& root = "/");

// Threads that can run at once: the cores of the affinity mask, or the CPU quota rounded up
// where that is less. At least 1.
int UsableCores(const std::filesystem::path& root = "/");

}  // namespace hetero::base
