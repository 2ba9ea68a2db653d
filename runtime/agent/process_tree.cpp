#include "runtime/agent/process_tree.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hetero::agent {
namespace {

// Fields of /proc/<pid>/stat from the parent on: "7 (a name) S 3 ...", where the name may hold
// anything. Empty: has ended.
std::vector<std::string> StatOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  if (!std::getline(file, line)) return {};
  const size_t name_end = line.rfind(") ");
  if (name_end == std::string::npos || name_end + 4 >= line.size()) return {};
  return absl::StrSplit(line.substr(name_end + 4), ' ');
}

pid_t ParentOf(pid_t pid) {
  const std::vector<std::string> fields = StatOf(pid);
  pid_t parent = 0;
  if (!fields.empty() && !absl::SimpleAtoi(fields.front(), &parent)) return 0;
  return parent;
}

// Its own time, and that of children which it has waited for.
int64_t ClockTicksOf(pid_t pid) {
  constexpr size_t kFirst = 10, kEnd = 14;  // utime, stime, cutime, cstime
  const std::vector<std::string> fields = StatOf(pid);
  int64_t ticks = 0;
  for (size_t i = kFirst; i < kEnd && i < fields.size(); ++i) {
    int64_t one = 0;
    if (absl::SimpleAtoi(fields[i], &one)) ticks += one;
  }
  return ticks;
}

}  // namespace

std::vector<pid_t> Descendants(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  DIR* folder = opendir("/proc");
  if (folder == nullptr) return {};
  while (const dirent* entry = readdir(folder)) {
    pid_t pid = 0;
    const char* const end = entry->d_name + strlen(entry->d_name);
    const auto parsed = std::from_chars(entry->d_name, end, pid);
    if (parsed.ec == std::errc() && parsed.ptr == end) children.emplace(ParentOf(pid), pid);
  }
  closedir(folder);
  std::vector<pid_t> found;
  const auto add_children = [&](pid_t parent) {
    const auto [begin, end] = children.equal_range(parent);
    for (auto child = begin; child != end; ++child) found.push_back(child->second);
  };
  add_children(root);
  for (size_t i = 0; i < found.size(); ++i) add_children(found[i]);
  return found;
}

double CpuSecondsOf(pid_t root) {
  // Those below first: one that ends meanwhile is then counted twice for a moment, not left out.
  int64_t ticks = 0;
  for (const pid_t pid : Descendants(root)) ticks += ClockTicksOf(pid);
  ticks += ClockTicksOf(root);
  return static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

int SignalDescendants(pid_t root, int signal) {
  const std::vector<pid_t> found = Descendants(root);
  for (const pid_t pid : found) kill(pid, signal);
  return static_cast<int>(found.size());
}

}  // namespace hetero::agent
