#include "base/listen_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

namespace hetero::base {
namespace {

constexpr int kBacklog = 128;

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

bool MeansAll(const std::string& host) { return host.empty() || host == "0.0.0.0" || host == "::"; }

// Of what was tried last; errno says why it failed.
Socket Listen(const addrinfo& address) {
  Socket listener(socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener.open()) return {};
  const int yes = 1, no = 0;
  // Not SO_REUSEPORT, with which two processes would share a port unnoticed.
  setsockopt(listener.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (address.ai_family == AF_INET6) {
    setsockopt(listener.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  }
  if (bind(listener.fd(), address.ai_addr, address.ai_addrlen) != 0) return {};
  if (listen(listener.fd(), kBacklog) != 0) return {};
  return listener;
}

struct Failure {
  std::string why;
  bool no_such_family = false;
};

Socket ListenOnOne(const std::string& host, int port, Failure& failure) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    failure = {.why = "the address is not known"};
    return {};
  }
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    Socket listener = Listen(*address);
    if (listener.open()) return listener;
    const int error = errno;
    failure = {.why = std::strerror(error),
               .no_such_family = error == EAFNOSUPPORT || error == EADDRNOTAVAIL};
  }
  return {};
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this == &other) return *this;
  if (open()) close(fd_);
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

Socket::~Socket() {
  if (open()) close(fd_);
}

absl::StatusOr<Socket> ListenOn(const std::string& host, int port) {
  Failure failure;
  // An IPv6 socket takes IPv4 callers too. A machine without IPv6 has only the other one.
  Socket listener = ListenOnOne(MeansAll(host) ? "::" : host, port, failure);
  if (!listener.open() && MeansAll(host) && failure.no_such_family) {
    listener = ListenOnOne("0.0.0.0", port, failure);
  }
  if (listener.open()) return listener;
  return absl::UnavailableError("cannot listen on " + (host.empty() ? "all addresses" : host) +
                                " port " + std::to_string(port) + ": " + failure.why +
                                "; choose another port, or 0 for any free one");
}

int PortOf(const Socket& listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace hetero::base
