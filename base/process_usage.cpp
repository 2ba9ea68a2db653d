#include "base/process_usage.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>

namespace hetero::base {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> FirstLine(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<double> FirstNumber(const fs::path& path) {
  const std::optional<std::string> line = FirstLine(path);
  if (!line) return std::nullopt;
  std::istringstream words(*line);
  double number;
  if (!(words >> number)) return std::nullopt;  // cgroup v2 writes "max" for no limit
  return number;
}

// The cgroup of this process for `controller` (v1), or in the unified hierarchy (v2) when empty.
// Lines read "hierarchy:controller,controller:/path".
std::optional<std::string> CgroupPath(const fs::path& root, const std::string& controller) {
  std::ifstream file(root / "proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::istringstream controllers(line.substr(first + 1, second - first - 1));
    bool match = controller.empty() && second == first + 1;
    for (std::string name; std::getline(controllers, name, ',');) match |= name == controller;
    if (match) return line.substr(second + 1);
  }
  return std::nullopt;
}

using ReadLimit = std::function<std::optional<double>(const fs::path& group)>;

// The smallest limit from the group at `path` below `mount` up to `mount` itself. A container often
// sees its own group mounted as the root while the path is the host's; groups that are not
// visible are passed over.
std::optional<double> Tightest(const fs::path& mount, const std::string& path,
                               const ReadLimit& read) {
  std::optional<double> tightest;
  fs::path group = fs::path(path).relative_path();
  while (true) {
    if (const std::optional<double> limit = read(mount / group)) {
      tightest = std::min(tightest.value_or(*limit), *limit);
    }
    if (group.empty()) return tightest;
    group = group.parent_path();
  }
}

// The tightest limit over both versions of cgroups, of which a machine may have a mix.
std::optional<double> CgroupLimit(const fs::path& root, const std::string& controller,
                                  const ReadLimit& version1, const ReadLimit& version2) {
  const fs::path mount = root / "sys/fs/cgroup";
  std::optional<double> limit;
  if (const auto path = CgroupPath(root, "")) limit = Tightest(mount, *path, version2);
  if (const auto path = CgroupPath(root, controller)) {
    if (const auto other = Tightest(mount / controller, *path, version1)) {
      limit = std::min(limit.value_or(*other), *other);
    }
  }
  return limit;
}

std::optional<double> QuotaVersion1(const fs::path& group) {
  const auto quota = FirstNumber(group / "cpu.cfs_quota_us");
  const auto period = FirstNumber(group / "cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

std::optional<double> QuotaVersion2(const fs::path& group) {
  const std::optional<std::string> line = FirstLine(group / "cpu.max");
  if (!line) return std::nullopt;
  std::istringstream words(*line);
  double quota, period;
  if (!(words >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<double> MemoryVersion1(const fs::path& group) {
  const auto bytes = FirstNumber(group / "memory.limit_in_bytes");
  // No limit is written as the largest number of whole pages.
  if (!bytes || *bytes >= 0x1p62) return std::nullopt;
  return bytes;
}

std::optional<double> MemoryVersion2(const fs::path& group) {
  return FirstNumber(group / "memory.max");
}

int64_t StatusBytes(const std::string& name) {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    int64_t kibibytes;
    if (word == name && file >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

int AffinityCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Fails on machines with more than CPU_SETSIZE cores; the count of all of them is then right
  // enough.
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

ProcessUsage ReadProcessUsage() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  ProcessUsage result;
  result.cpu_seconds = Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  result.resident_bytes = StatusBytes("VmRSS:");
  // VmHWM, unlike ru_maxrss, does not keep what the parent had before exec.
  result.peak_resident_bytes = StatusBytes("VmHWM:");
  if (result.peak_resident_bytes == 0) result.peak_resident_bytes = usage.ru_maxrss * 1024;
  return result;
}

std::optional<double> CgroupCpuQuota(const std::filesystem::path& root) {
  return CgroupLimit(root, "cpu", QuotaVersion1, QuotaVersion2);
}

std::optional<int64_t> CgroupMemoryLimit(const std::filesystem::path& root) {
  const auto bytes = CgroupLimit(root, "memory", MemoryVersion1, MemoryVersion2);
  if (!bytes) return std::nullopt;
  return static_cast<int64_t>(*bytes);
}

int UsableCores(const std::filesystem::path& root) {
  const int cores = AffinityCores();
  const std::optional<double> quota = CgroupCpuQuota(root);
  const int allowed = quota ? static_cast<int>(std::ceil(std::min(*quota, 1e6))) : cores;
  return std::max(1, std::min(cores, allowed));
}

}  // namespace hetero::base
