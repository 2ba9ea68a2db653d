#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What the kernel's files below /proc and /sys/fs/cgroup say (man 5 proc; Documentation of cgroup
// v2). Pure; text that is not such a file's, is cut short or has numbers that no machine has gives
// nothing, or what could be read of it.
namespace hetero::base {

// /proc/<pid>/task/<tid>/schedstat: "cpu-ns wait-ns slices".
struct ThreadTimes {
  double cpu_seconds = 0;
  double run_queue_seconds = 0;  // ready to run, and not running
};
std::optional<ThreadTimes> ParseSchedstat(std::string_view text);

// /proc/<pid>/stat: "7 (a name) S 3 ...", where the name may hold anything.
struct ProcessStat {
  std::string name;
  double cpu_seconds = 0;           // user and system, all its threads
  double children_cpu_seconds = 0;  // of its children that have ended and were waited for
  double start_seconds = 0;         // when it began, since the machine did
};
std::optional<ProcessStat> ParseStat(std::string_view text, double ticks_per_second);

// /proc/<pid>/statm, whose second number counts pages. Bytes.
std::optional<int64_t> ParseResident(std::string_view text, int64_t page_bytes);

// /proc/<pid>/io: what storage really delivered and got.
struct DiskBytes {
  int64_t read = 0, written = 0;
};
std::optional<DiskBytes> ParseIo(std::string_view text);

// /proc/stat, by core, of those up to kMostCores: time since the machine's start. One that is off
// has none.
inline constexpr size_t kMostCores = 4096;
struct CoreTimes {
  double busy_seconds = 0;
  double all_seconds = 0;
};
std::vector<CoreTimes> ParseCores(std::string_view text, double ticks_per_second);

// /proc/net/dev: sums over all interfaces but loopback.
struct NetworkBytes {
  int64_t received = 0, sent = 0;
};
NetworkBytes ParseNetDev(std::string_view text);

// /proc/uptime: seconds since the machine began.
std::optional<double> ParseUptime(std::string_view text);

// /proc/pressure/*, *.pressure of a cgroup: seconds in which some task waited.
std::optional<double> ParsePressure(std::string_view text);

// cpu.stat of a cgroup: seconds in which it was stopped because of its quota. Empty: it has none of
// that line, as the root.
std::optional<double> ParseThrottled(std::string_view text);

// /proc/<pid>/task/<tid>/children: at most 10,000 of them.
std::vector<pid_t> ParseChildren(std::string_view text);

}  // namespace hetero::base
