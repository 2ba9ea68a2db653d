#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/listen_socket.h"

namespace hetero::agent {

// A Unix stream socket at `path` that listens, does not block and is not inherited. Only processes
// of this user can connect (mode 0600). A socket that was left there is replaced. kInvalidArgument
// names a path that is too long for a socket, or that is something else.
absl::StatusOr<base::Socket> ListenAtPath(const std::string& path);

// Sends all of `bytes`, with the descriptor `passed` unless that is -1. kDeadlineExceeded when the
// other side takes nothing for `patience`; kUnavailable when it is gone.
absl::Status SendAll(int socket, std::string_view bytes, int passed, base::Duration patience);

// The process at the other end of a connection; 0: not known.
int PeerProcess(int socket);

}  // namespace hetero::agent
