#pragma once

#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "base/signals.h"
#include "runtime/process/identity.h"

namespace hetero::process {

// How a process of a job starts, whatever its role. Construct it first in main(), before any other
// thread: from then on the process ends with its launcher, and SIGTERM and SIGINT ask it to stop.
class RoleProcess {
 public:
  RoleProcess();

  std::stop_token stop() const { return signals_.first(); }

  // Then, before gRPC is used: keeps it initialised, takes over its log, raises the limit of open
  // files. The log's lines bear `name`.
  void SetUp(const std::string& name);
  // The same for a member of the job, with the identity and the name that its environment gives.
  // The error of IdentityFromEnvironment().
  absl::StatusOr<Identity> SetUpMember();

 private:
  base::SignalStop signals_;
};

// Writes a line to the standard output at once, for a launcher that passes it on.
void PrintLine(const std::string& line);

}  // namespace hetero::process
