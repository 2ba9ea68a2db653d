#include "base/socket_address.h"

#include <netdb.h>
#include <sys/socket.h>

#include <array>

namespace hetero::base {
namespace {

using NameFunction = int (*)(int, sockaddr*, socklen_t*);

std::string AddressOf(int socket, NameFunction name_of) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (name_of(socket, generic, &length) != 0) return "";
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return "";
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (getnameinfo(generic, length, host.data(), host.size(), port.data(), port.size(),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "";
  }
  return std::string(host.data()) + ":" + port.data();
}

}  // namespace

std::string PeerAddress(int socket) { return AddressOf(socket, getpeername); }

std::string OwnAddress(int socket) { return AddressOf(socket, getsockname); }

}  // namespace hetero::base
