#include "runtime/head/listen_address.h"

#include <grpcpp/server_builder.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "runtime/head/keepalive.h"

namespace hetero::head {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";

std::string SocketPath(const std::string& address) {
  std::string_view path = std::string_view(address).substr(kUnixPrefix.size());
  if (path.starts_with("///")) path.remove_prefix(2);
  return std::string(path);
}

bool SomebodyServes(const sockaddr_un& address) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  const bool connected =
      ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  const bool busy = !connected && errno == EAGAIN;
  ::close(fd);
  return connected || busy;
}

}  // namespace

bool IsUnixAddress(const std::string& address) { return address.starts_with(kUnixPrefix); }

absl::Status CheckListenAddress(const std::string& address) {
  if (!IsUnixAddress(address)) return absl::OkStatus();
  const std::string path = SocketPath(address);
  sockaddr_un socket_address{};
  if (path.size() >= sizeof(socket_address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot listen on ", address, ": the path has ", path.size(),
                     " characters, a socket path at most ", sizeof(socket_address.sun_path) - 1,
                     "; use a folder with a shorter path"));
  }
  socket_address.sun_family = AF_UNIX;
  std::memcpy(socket_address.sun_path, path.c_str(), path.size() + 1);
  if (SomebodyServes(socket_address)) {
    return absl::AlreadyExistsError(absl::StrCat("cannot listen on ", address,
                                                 ": another process serves this socket; stop it or "
                                                 "use another folder"));
  }
  return absl::OkStatus();
}

absl::Status CannotListen(const std::string& address) {
  if (IsUnixAddress(address)) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", address, ": check that the folder exists and can be written"));
  }
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", address,
                   ": the port is taken by another process, or the address is not one of this "
                   "machine; use another port, or 0 for any free one"));
}

std::string BoundAddress(const std::string& address, int port) {
  if (IsUnixAddress(address)) return address;
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

void ConfigureServer(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Members ping as often; by default that is taken for abuse.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 500);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  // A ping for each heartbeat, to find how much the connection could carry: it carries little.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
}

}  // namespace hetero::head
