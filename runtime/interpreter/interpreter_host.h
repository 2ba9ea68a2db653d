#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "base/listen_socket.h"
#include "runtime/interpreter/interpreter.h"

namespace hetero::interpreter {

struct HostOptions {
  std::string program = "python3";       // in PATH, or a path
  std::vector<std::string> environment;  // "NAME=value"; of the process and all interpreters
  std::vector<std::string> folders;      // where modules are looked for, too; some may be empty
  // For all imports.
  base::Duration patience = std::chrono::seconds(120);
  // After so long an interpreter ends itself in a call, if nobody has.
  base::Duration longest_call = std::chrono::seconds(60);
};

// The process that has imported the modules of the Python operators, and from which interpreters
// are forked. It ends with this object, and with this process, and all interpreters with it.
class InterpreterHost {
 public:
  // Starts it and waits for the imports. kInvalidArgument names the entry of `pipeline` whose
  // function cannot be had, and why; kNotFound: there is no such program; kFailedPrecondition: it
  // ended, or took too long; kCancelled: `stopping` was set.
  static absl::StatusOr<std::unique_ptr<InterpreterHost>> Start(
      const std::vector<api::OperatorSpec>& pipeline, const HostOptions& options,
      base::Clock& clock, const std::function<bool()>& stopping);
  ~InterpreterHost();

  // From any thread, also in a child of fork().
  absl::StatusOr<std::unique_ptr<Interpreter>> Fork(base::Clock& clock,
                                                    const std::atomic<bool>& stopping) const {
    return Interpreter::Fork(control_.fd(), kForkPatience, clock, stopping);
  }
  static constexpr base::Duration kForkPatience = std::chrono::seconds(20);
  // Versions of Python, numpy and what else decides results, and checksums of the modules.
  const std::map<std::string, std::string>& environment() const { return environment_; }

 private:
  InterpreterHost(base::Socket control, pid_t pid, std::jthread parent, base::Duration patience)
      : control_(std::move(control)), pid_(pid), parent_(std::move(parent)), patience_(patience) {}
  absl::Status Prepare(const std::vector<api::OperatorSpec>& pipeline, const HostOptions& options,
                       base::Clock& clock, const std::function<bool()>& stopping);

  base::Socket control_;
  const pid_t pid_;
  // The kernel ends the process with the thread that started it.
  std::jthread parent_;
  const base::Duration patience_;
  std::map<std::string, std::string> environment_;
};

}  // namespace hetero::interpreter
