#include "runtime/head/process_gone.h"

#include <signal.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace hetero::head {

bool ProcessGone(int64_t pid) {
  if (pid <= 0) return false;
  if (::kill(static_cast<pid_t>(pid), 0) != 0) return errno == ESRCH;
  // "pid (name) state ...": the name may hold blanks and parentheses.
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  if (!std::getline(file, line)) return false;
  const size_t name_end = line.rfind(") ");
  return name_end != std::string::npos && name_end + 2 < line.size() &&
         (line[name_end + 2] == 'Z' || line[name_end + 2] == 'X');
}

}  // namespace hetero::head
