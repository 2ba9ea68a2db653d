#include "runtime/agent/process_tree.h"

#include <dirent.h>
#include <signal.h>

#include <charconv>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"

namespace hetero::agent {
namespace {

// Of /proc/<pid>/stat: "7 (a name) S 3 ...", where the name may hold anything. 0: has ended.
pid_t ParentOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  if (!std::getline(file, line)) return 0;
  const size_t name_end = line.rfind(") ");
  if (name_end == std::string::npos || name_end + 4 >= line.size()) return 0;
  pid_t parent = 0;
  std::from_chars(line.data() + name_end + 4, line.data() + line.size(), parent);
  return parent;
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

int SignalDescendants(pid_t root, int signal) {
  const std::vector<pid_t> found = Descendants(root);
  for (const pid_t pid : found) kill(pid, signal);
  return static_cast<int>(found.size());
}

}  // namespace hetero::agent
