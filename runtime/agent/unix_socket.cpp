#include "runtime/agent/unix_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace hetero::agent {
namespace {

constexpr int kBacklog = 16;
constexpr mode_t kMode = 0600;

// Room for one file, as the system wants it.
union Control {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

absl::Status Refused(const std::string& path) {
  return absl::UnavailableError(
      absl::StrCat("no socket for the script's stream at ", path, ": ", std::strerror(errno)));
}

ssize_t SendSome(int socket, std::string_view bytes, int passed) {
  iovec text = {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  Control control = {};
  msghdr message = {};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  if (passed >= 0) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(part), &passed, sizeof passed);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

absl::StatusOr<base::Socket> ListenAtPath(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the socket's path \"", path, "\" has ", path.size(), " bytes; it may have 1 to ",
        sizeof address.sun_path - 1, ": choose a shorter folder for it"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  struct stat there = {};
  if (lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " is no socket, and is not replaced by one: remove it"));
    }
    unlink(path.c_str());
  }
  base::Socket listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.open()) return Refused(path);
  // Linux gives the file the mode of the socket, so that it never has another.
  if (fchmod(listener.fd(), kMode) != 0 ||
      bind(listener.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener.fd(), kBacklog) != 0) {
    return Refused(path);
  }
  return listener;
}

absl::Status SendAll(int socket, std::string_view bytes, int passed, base::Duration patience) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  while (!bytes.empty()) {
    const ssize_t sent = SendSome(socket, bytes, passed);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      passed = -1;
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      return absl::UnavailableError(absl::StrCat("the script is gone: ", std::strerror(errno)));
    }
    pollfd ready = {.fd = socket, .events = POLLOUT, .revents = 0};
    const int woken = poll(&ready, 1, static_cast<int>(milliseconds));
    if (woken == 0) return absl::DeadlineExceededError("the script does not read its answers");
  }
  return absl::OkStatus();
}

int PeerProcess(int socket) {
  ucred credentials = {};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return 0;
  return credentials.pid;
}

}  // namespace hetero::agent
