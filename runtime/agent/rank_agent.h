#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "runtime/agent/script_process.h"
#include "runtime/process/rank_session.h"

namespace hetero::agent {

struct RankAgentOptions {
  process::RankSession::Options session;
  int ranks = 1;              // of this pod
  int threads = 0;            // OMP_NUM_THREADS of the script, where unset; 0: cores by ranks
  std::string socket_folder;  // where the stream is found: <folder>/script-<rank>.sock
  std::string log_folder;     // gets script-<rank>.log; empty: all ranks print into our output
  // Where the command runs; empty: spec.training.script.workingDirectory.
  std::string working_directory;
  // Of a script that somebody else starts: the socket that it may connect to, and who is told of it
  // once it may.
  std::string attached_socket;
  std::function<void(const std::string&)> on_listening;
};

// One rank with a script from joining the job to leaving it: in each generation its script is
// started, served and ended. `script` is where it runs; null: somebody else starts it, once, and
// the job ends with it. Returns what ended the rank; kCancelled when told to stop, kAborted when
// `stop` made this rank leave the others.
absl::Status RunRankAgent(RankAgentOptions options, ScriptProcess* script, base::Clock& clock,
                          std::stop_token stop);

}  // namespace hetero::agent
