#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace hetero::base {

// Closed when it goes; -1: none.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  int fd() const { return fd_; }
  bool open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// A TCP socket that listens, does not block and is not inherited. `host` is an address, without
// brackets, or a name; "", "0.0.0.0" and "::" mean all addresses, of IPv4 and of IPv6, as far as
// the machine has them. `port` 0 takes a free one. An error (kUnavailable) names host and port.
absl::StatusOr<Socket> ListenOn(const std::string& host, int port);

// The port of a listening socket.
int PortOf(const Socket& listener);

}  // namespace hetero::base
