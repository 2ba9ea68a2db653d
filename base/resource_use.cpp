#include "base/resource_use.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <utility>

#include "base/process_usage.h"

namespace hetero::base {
namespace {

constexpr size_t kMostBytes = 256 << 10;  // of one file; what a process reads is at its beginning
constexpr size_t kMostTasks = 4096;       // threads, and processes below this one
constexpr size_t kMostOpen = 512;         // threads whose files stay open
constexpr size_t kMostChildThreads = 256;

double TicksPerSecond() { return static_cast<double>(sysconf(_SC_CLK_TCK)); }

// Empty: there is nothing.
std::string_view ReadAt(int fd, std::string* buffer) {
  size_t size = 0;
  while (size < kMostBytes) {
    if (buffer->size() < size + 1024) buffer->resize(std::max(buffer->size() * 2, size + 4096));
    const ssize_t got =
        pread(fd, buffer->data() + size, buffer->size() - size, static_cast<off_t>(size));
    if (got <= 0) break;
    size += static_cast<size_t>(got);
    if (size < 1024) break;  // a small file comes whole
  }
  return {buffer->data(), size};
}

std::string_view ReadOnce(const std::string& path, std::string* buffer) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const std::string_view text = ReadAt(fd, buffer);
  close(fd);
  return text;
}

std::string NameOf(const std::string& task, std::string* buffer) {
  std::string_view name = ReadOnce(task + "/comm", buffer);
  if (name.ends_with('\n')) name.remove_suffix(1);
  return std::string(name);
}

// The folders of `path` that are numbers.
std::vector<pid_t> Tasks(const char* path) {
  std::vector<pid_t> tasks;
  DIR* const folder = opendir(path);
  if (folder == nullptr) return tasks;
  while (const dirent* entry = readdir(folder)) {
    pid_t task = 0;
    const char* const end = entry->d_name + strlen(entry->d_name);
    const auto parsed = std::from_chars(entry->d_name, end, task);
    if (parsed.ec != std::errc() || parsed.ptr != end) continue;
    tasks.push_back(task);
    if (tasks.size() == kMostTasks) break;
  }
  closedir(folder);
  return tasks;
}

// Of a thread. Below /proc/self/task, what was opened of threads would be found there by whoever
// waits for the process, who then stays in the kernel until the last of them has run: seconds of
// CPU time on a busy machine.
std::string TaskFolder(pid_t task) { return "/proc/" + std::to_string(task); }

void AddChildrenOf(const std::string& process, std::string* buffer, std::vector<pid_t>* children) {
  for (const pid_t task : Tasks(("/proc/" + process + "/task").c_str())) {
    for (const pid_t child : ParseChildren(
             ReadOnce(TaskFolder(task) + "/task/" + std::to_string(task) + "/children", buffer))) {
      if (children->size() < kMostTasks) children->push_back(child);
    }
  }
}

// Of this process in the hierarchy of version 2, as far as it can be seen from here: a container
// has its own group mounted as the root.
std::optional<std::filesystem::path> FindGroup(std::string* buffer) {
  std::string_view text = ReadOnce("/proc/self/cgroup", buffer);
  const size_t begin = text.starts_with("0::") ? 0 : text.find("\n0::");
  if (begin == std::string_view::npos) return std::nullopt;
  text.remove_prefix(text.find("0::", begin) + 3);
  const std::filesystem::path own(std::string(text.substr(0, text.find('\n'))));
  std::error_code ignored;
  for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    for (const auto& group :
         {std::filesystem::path(mount) / own.relative_path(), std::filesystem::path(mount)}) {
      if (std::filesystem::exists(group / "cpu.stat", ignored)) return group;
    }
  }
  return std::nullopt;
}

double CoresOfAffinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
}

double AgeOfProcess(std::string* buffer) {
  const auto now = ParseUptime(ReadOnce("/proc/uptime", buffer));
  const auto stat = ParseStat(ReadOnce("/proc/self/stat", buffer), TicksPerSecond());
  return now && stat ? std::max(*now - stat->start_seconds, 0.0) : 0;
}

}  // namespace

struct ResourceReader::File {
  int fd = -1;
  std::string name;  // of a thread
  int times_named = 0;
  bool seen = true;

  File() = default;
  explicit File(const std::string& path) : fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  File(File&& other) noexcept
      : fd(std::exchange(other.fd, -1)),
        name(std::move(other.name)),
        times_named(other.times_named),
        seen(other.seen) {}
  File& operator=(File&& other) noexcept {
    std::swap(fd, other.fd);
    std::swap(name, other.name);
    std::swap(times_named, other.times_named);
    std::swap(seen, other.seen);
    return *this;
  }
  ~File() {
    if (fd >= 0) close(fd);
  }
};

ResourceReader::ResourceReader() : group_(FindGroup(&buffer_)) {
  for (const char* path : {"/proc/self/statm", "/proc/self/io", "/proc/stat", "/proc/net/dev"}) {
    files_.emplace(path, File(path));
  }
  for (const char* resource : {"cpu", "io", "memory"}) {
    const std::string name(resource);
    File file;
    if (group_) file = File((*group_ / (name + ".pressure")).string());
    // Where pressure is not counted by group, the file is there and cannot be read.
    if (file.fd < 0 || !ParsePressure(ReadAt(file.fd, &buffer_))) {
      file = File("/proc/pressure/" + name);
    }
    files_.emplace(name, std::move(file));
  }
  files_.emplace("throttled", group_ ? File((*group_ / "cpu.stat").string()) : File());
}

ResourceReader::~ResourceReader() = default;

ResourceTotals ResourceReader::Read() {
  const bool seldom = reads_++ % kSeldom == 0;
  if (seldom) FindLimits();
  ResourceTotals totals;
  if (reads_ == 1) totals.process_seconds = AgeOfProcess(&buffer_);
  // Threads first, so that their sum is not above the process' time.
  ReadThreads(seldom, totals);
  ReadChildren(seldom || reads_ <= kFirstReads, totals);
  ReadMachine(totals);
  totals.usable_cores = usable_cores_;
  totals.memory_limit_bytes = memory_limit_bytes_;
  return totals;
}

void ResourceReader::FindLimits() {
  usable_cores_ = CoresOfAffinity();
  if (const auto quota = CgroupCpuQuota()) usable_cores_ = std::min(usable_cores_, *quota);
  struct sysinfo machine = {};
  sysinfo(&machine);
  memory_limit_bytes_ = static_cast<int64_t>(machine.totalram) * machine.mem_unit;
  if (const auto limit = CgroupMemoryLimit()) {
    memory_limit_bytes_ = std::min(memory_limit_bytes_, *limit);
  }
}

void ResourceReader::ReadThreads(bool seldom, ResourceTotals& totals) {
  for (auto& [id, file] : threads_) file.seen = false;
  for (const pid_t id : Tasks("/proc/self/task")) {
    auto known = threads_.find(id);
    // A thread begins with the name of the one that made it, and has its own a moment later.
    if (known == threads_.end())
      known = threads_.emplace(id, File(TaskFolder(id) + "/schedstat")).first;
    File& file = known->second;
    file.seen = true;
    const std::string_view text = file.fd < 0 ? std::string_view() : ReadAt(file.fd, &buffer_);
    const std::optional<ThreadTimes> times = ParseSchedstat(text);
    if (!times) {
      file.seen = false;  // has ended
      continue;
    }
    if (seldom || file.times_named < kYoungReads) {
      file.name = NameOf(TaskFolder(id), &buffer_);
      ++file.times_named;
    }
    totals.threads.push_back({id, file.name, times->cpu_seconds, times->run_queue_seconds});
    if (threads_.size() > kMostOpen) file.seen = false;
  }
  std::erase_if(threads_, [](const auto& thread) { return !thread.second.seen; });
}

void ResourceReader::ReadChildren(bool look, ResourceTotals& totals) {
  if (look) {
    children_.clear();
    AddChildrenOf("self", &buffer_, &children_);
    for (size_t i = 0; i < children_.size(); ++i) {
      AddChildrenOf(std::to_string(children_[i]), &buffer_, &children_);
    }
  }
  // Those below first: what ends meanwhile is counted twice for a moment, and not left out.
  std::erase_if(children_, [&](pid_t id) {
    const std::string folder = "/proc/" + std::to_string(id);
    const auto stat = ParseStat(ReadOnce(folder + "/stat", &buffer_), TicksPerSecond());
    if (!stat) return true;
    totals.children.push_back({id, stat->name, stat->cpu_seconds + stat->children_cpu_seconds, 0});
    for (const pid_t thread : Tasks((folder + "/task").c_str())) {
      if (totals.child_threads.size() == kMostChildThreads) break;
      const auto times = ParseSchedstat(ReadOnce(TaskFolder(thread) + "/schedstat", &buffer_));
      if (!times) continue;
      totals.child_threads.push_back(
          {thread, stat->name, times->cpu_seconds, times->run_queue_seconds});
    }
    totals.rss_bytes +=
        ParseResident(ReadOnce(folder + "/statm", &buffer_), sysconf(_SC_PAGESIZE)).value_or(0);
    return false;
  });
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  rusage usage = {};
  getrusage(RUSAGE_CHILDREN, &usage);
  totals.children_cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  getrusage(RUSAGE_SELF, &usage);
  totals.process_cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  totals.major_faults = usage.ru_majflt;
}

void ResourceReader::ReadMachine(ResourceTotals& totals) {
  const auto text = [this](const char* name) {
    const int fd = files_.at(name).fd;
    return fd < 0 ? std::string_view() : ReadAt(fd, &buffer_);
  };
  totals.rss_bytes += ParseResident(text("/proc/self/statm"), sysconf(_SC_PAGESIZE)).value_or(0);
  totals.disk = ParseIo(text("/proc/self/io")).value_or(DiskBytes());
  totals.cores = ParseCores(text("/proc/stat"), TicksPerSecond());
  totals.network = ParseNetDev(text("/proc/net/dev"));
  totals.cpu_pressure_seconds = ParsePressure(text("cpu"));
  totals.io_pressure_seconds = ParsePressure(text("io"));
  totals.memory_pressure_seconds = ParsePressure(text("memory"));
  totals.throttled_seconds = ParseThrottled(text("throttled"));
}

}  // namespace hetero::base
