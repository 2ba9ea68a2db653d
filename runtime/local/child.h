#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/local/processes.h"

namespace hetero::local {

struct ExitStatus {
  int code = 0;    // when it exited
  int signal = 0;  // when a signal ended it
  bool ok() const { return code == 0 && signal == 0; }
  std::string ToString() const;  // "exit code 1", "killed by SIGKILL"
};

// A running process in a process group of its own, so that the terminal's Ctrl-C reaches the
// launcher only. Killed and reaped by the destructor. One thread uses it.
class Child {
 public:
  Child() = default;  // no process
  // Standard error goes to `log_file` (appended); standard output to `stdout_fd`, or to the log
  // when it is negative.
  static absl::StatusOr<Child> Start(const ProcessPlan& plan, int32_t attempt, int64_t incarnation,
                                     const std::string& log_file, int stdout_fd);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  pid_t pid() const { return pid_; }
  // The exit status once the process has ended; never blocks.
  std::optional<ExitStatus> Poll();
  bool running() { return !Poll().has_value(); }
  void Signal(int signal);

 private:
  explicit Child(pid_t pid) : pid_(pid) {}
  pid_t pid_ = -1;  // -1: none
  std::optional<ExitStatus> exit_;
};

}  // namespace hetero::local
