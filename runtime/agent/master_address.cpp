#include "runtime/agent/master_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace hetero::agent {
absl::StatusOr<int32_t> PickPort() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int reuse = 1;
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_ANY)}};
  socklen_t size = sizeof address;
  const bool bound =
      listener >= 0 && setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse) == 0 &&
      bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const int error = errno;
  if (listener >= 0) close(listener);
  if (bound) return ntohs(address.sin_port);
  return absl::ResourceExhaustedError(
      absl::StrCat("no free port for the script of rank 0: ", strerror(error)));
}

}  // namespace hetero::agent
