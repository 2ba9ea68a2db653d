#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/resource_text.h"

namespace hetero::base {

// One of this process' threads that live, or one process below it.
struct TaskUse {
  pid_t id = 0;
  std::string name;  // at most 15 bytes, as the kernel keeps it
  double cpu_seconds = 0;
  double run_queue_seconds = 0;  // of a process: not told
};

// What this process and the machine have used so far, but for what is said to be of now. What a
// kernel does not tell is 0 or absent.
struct ResourceTotals {
  double process_seconds = 0;  // since this process began; only with the first reading
  std::vector<TaskUse> threads;
  std::vector<TaskUse> children;    // all processes below this one; with their own that have ended
  double process_cpu_seconds = 0;   // of all threads, those that have ended too
  double children_cpu_seconds = 0;  // that have ended and were waited for
  int64_t rss_bytes = 0;            // now, with the children's
  int64_t major_faults = 0;
  DiskBytes disk;
  NetworkBytes network;
  // Of the cgroup, else of the machine: in which some task waited.
  std::optional<double> cpu_pressure_seconds, io_pressure_seconds, memory_pressure_seconds;
  std::optional<double> throttled_seconds;  // of the cgroup, by its quota
  std::vector<CoreTimes> cores;             // of the machine
  double usable_cores = 0;                  // now: affinity and quota
  int64_t memory_limit_bytes = 0;           // now: of the cgroup, else the machine's memory
  std::vector<TaskUse> child_threads;       // of `children`, some hundreds at most
};

// Reads them. Keeps the files open that it reads each time; what changes seldom (processes below
// this one, names of threads, limits) it looks for at every tenth time only; for processes each
// time at first, when a script is about to be started. One thread uses it.
// With 64 threads reading takes about a millisecond.
class ResourceReader {
 public:
  static constexpr int kYoungReads = 3;  // a thread is asked for its name each time
  static constexpr int kSeldom = 10;
  static constexpr int kFirstReads = 20;  // each looks for processes

  ResourceReader();
  ~ResourceReader();
  ResourceReader(const ResourceReader&) = delete;
  ResourceReader& operator=(const ResourceReader&) = delete;

  ResourceTotals Read();

 private:
  struct File;
  void ReadThreads(bool seldom, ResourceTotals& totals);
  void ReadChildren(bool look, ResourceTotals& totals);
  void ReadMachine(ResourceTotals& totals);
  void FindLimits();

  std::string buffer_;  // before what is made with it
  std::map<pid_t, File> threads_;
  std::vector<pid_t> children_;
  std::map<std::string, File> files_;           // by path
  std::optional<std::filesystem::path> group_;  // of the cgroup of version 2
  double usable_cores_ = 0;
  int64_t memory_limit_bytes_ = 0;
  int64_t reads_ = 0;
};

}  // namespace hetero::base
