#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/agent/keeper_messages.h"

namespace hetero::agent {

// How a script ended.
struct ScriptExit {
  int code = 0;
  int signal = 0;  // 0: it exited by itself
  bool ok() const { return code == 0 && signal == 0; }
  std::string ToString() const;  // "exit code 1", "killed by SIGKILL"
};

// The processes of one rank's script, from the agent's side: one script after another, each with
// all that it starts. They end with this object, and with this process, even when that is killed.
// One thread uses it.
class ScriptProcess {
 public:
  // A program may lie on a file system of another machine.
  static constexpr base::Duration kStartPatience = std::chrono::seconds(60);

  // One for each rank of the pod. Call it before the program's first thread: it forks the keepers
  // (keeper_process.h).
  static absl::StatusOr<std::vector<std::unique_ptr<ScriptProcess>>> ForkKeepers(int count);
  ~ScriptProcess();

  // Only when none runs. What cannot be started fails with what was looked for, and where:
  // kNotFound, kPermissionDenied or kFailedPrecondition when that comes from the job, so that it
  // would fail again; kUnavailable when the machine has no room for a process. kDeadlineExceeded
  // when the keeper has not answered within `patience`: it counts as lost from then on.
  absl::StatusOr<pid_t> Start(const ScriptCommand& command,
                              base::Duration patience = kStartPatience);
  // How the script itself has ended; empty when it still runs after `patience`. kUnavailable when
  // its keeper was killed.
  absl::StatusOr<std::optional<ScriptExit>> AwaitExit(base::Duration patience);
  // To the script itself, while it runs.
  void Signal(int signal);
  // Ends the script and all that it started: SIGTERM, and after `grace` SIGKILL. Waits until none
  // of them is left. kDeadlineExceeded when the kernel does not let go of some; they are left to
  // it.
  absl::Status End(base::Duration grace);

  // What the scripts print comes out here; stays open.
  int output() const { return output_; }
  bool running() const { return running_; }
  // Of all scripts so far, and of all that they started. From any thread.
  double cpu_seconds() const;
  // The keeper was killed or did not answer: no script can be started any more.
  bool keeper_lost() const { return keeper_lost_; }

 private:
  ScriptProcess(int socket, int output, pid_t keeper)
      : socket_(socket), output_(output), keeper_(keeper) {}
  // Within `patience`; an exit that comes before it is kept.
  absl::StatusOr<KeeperMessage> WaitForAnswer(base::Duration patience);
  bool Readable(base::Duration patience) const;

  absl::Status LoseKeeper();

  const int socket_, output_;
  const pid_t keeper_;
  bool running_ = false;
  bool keeper_lost_ = false;
  std::optional<ScriptExit> exit_;
};

}  // namespace hetero::agent
