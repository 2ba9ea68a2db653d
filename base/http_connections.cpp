#include "base/http_connections.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

namespace hetero::metrics {
namespace {

constexpr base::Duration kNoFileLeft = std::chrono::milliseconds(100);
constexpr base::Duration kGoodbye = std::chrono::seconds(1);
constexpr int kReadsInARow = 8;  // then it is somebody else's turn
constexpr char kTooLarge[] =
    "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: "
    "0\r\n\r\n";

base::Instant Now() { return base::Clock::Real().Now(); }

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// Rounded up: a wait that ends before its time would be repeated at once.
int Milliseconds(base::Duration wait) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  return static_cast<int>(std::clamp<int64_t>(ms, 0, 60'000));
}

// Closing alone would leave the kernel with what a caller does not read, for minutes.
void DropUnread(const base::Socket& socket) {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  setsockopt(socket.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

}  // namespace

void HttpConnections::Run(std::stop_token stop) {
  const base::Socket wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const std::stop_callback on_stop(stop, [&wake] {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake.fd(), &one, sizeof one);
  });
  while (!stop.stop_requested()) {
    AwaitEvents(wake.fd(), Now());
    const base::Instant now = Now();
    // All of them, however many are ready: asking is a call each, and there are few.
    std::erase_if(connections_, [&](Connection& connection) {
      if (!Advance(connection, now)) return true;
      if (now < connection.ends) return false;
      if (!connection.answer.empty() && !connection.all_said) DropUnread(connection.socket);
      return true;
    });
    AcceptAll(now);
  }
  connections_.clear();
  listener_ = base::Socket();
}

void HttpConnections::AwaitEvents(int wake, base::Instant now) {
  std::vector<pollfd> events = {{.fd = wake, .events = POLLIN, .revents = 0}};
  base::Instant until = now + std::chrono::seconds(60);
  if (now >= accept_at_) {
    events.push_back({.fd = listener_.fd(), .events = POLLIN, .revents = 0});
  } else {
    until = std::min(until, accept_at_);
  }
  for (const Connection& connection : connections_) {
    const bool writes = !connection.answer.empty() && !connection.all_said;
    events.push_back({.fd = connection.socket.fd(),
                      .events = static_cast<short>(writes ? POLLOUT : POLLIN),
                      .revents = 0});
    until = std::min(until, connection.ends);
  }
  poll(events.data(), events.size(), Milliseconds(until - now));
}

void HttpConnections::AcceptAll(base::Instant now) {
  if (now < accept_at_) return;
  // No more at once than there is room for: those that have just come are to be heard first.
  for (size_t accepted = 0; accepted < limits_.connections; ++accepted) {
    base::Socket socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.open()) {
      if (WouldBlock()) return;
      if (errno == ECONNABORTED) continue;
      accept_at_ = now + kNoFileLeft;
      return;
    }
    if (connections_.size() >= limits_.connections) MakeRoom();
    Connection& connection = connections_.emplace_back();
    connection.socket = std::move(socket);
    connection.ends = now + std::min(limits_.to_ask, limits_.in_all);
    connection.last = now + limits_.in_all;
    if (!Advance(connection, now)) connections_.pop_back();
  }
}

void HttpConnections::MakeRoom() {
  const auto silent = std::find_if(connections_.begin(), connections_.end(),
                                   [](const Connection& c) { return c.answer.empty(); });
  connections_.erase(silent == connections_.end() ? connections_.begin() : silent);
}

bool HttpConnections::Advance(Connection& connection, base::Instant now) {
  if (connection.answer.empty() || connection.all_said) return Read(connection, now);
  return Write(connection, now);
}

bool HttpConnections::Read(Connection& connection, base::Instant now) {
  std::array<char, 4096> bytes;
  for (int reads = 0; reads < kReadsInARow; ++reads) {
    const ssize_t count = recv(connection.socket.fd(), bytes.data(), bytes.size(), 0);
    if (count < 0) return WouldBlock();
    if (count == 0) return false;
    if (connection.all_said) continue;  // what came after the request
    connection.request.append(bytes.data(), static_cast<size_t>(count));
    const size_t end = connection.request.find("\r\n\r\n");
    if (end != std::string::npos) {
      Reply reply = answer_(connection.request.substr(0, end + 4), connection.socket);
      if (reply.take_over) {
        reply.take_over(std::move(connection.socket));
        return false;
      }
      connection.answer = std::move(reply.bytes);
    } else if (connection.request.size() > limits_.request_bytes) {
      connection.answer = kTooLarge;
    } else {
      continue;
    }
    connection.request = std::string();
    connection.ends = connection.last;
    return !connection.answer.empty() && Write(connection, now);
  }
  return true;
}

bool HttpConnections::Write(Connection& connection, base::Instant now) {
  while (connection.written < connection.answer.size()) {
    const ssize_t count =
        send(connection.socket.fd(), connection.answer.data() + connection.written,
             connection.answer.size() - connection.written, MSG_NOSIGNAL);
    if (count < 0) return WouldBlock();
    connection.written += static_cast<size_t>(count);
  }
  // Closing while bytes of the caller's are unread would take the answer back from it.
  shutdown(connection.socket.fd(), SHUT_WR);
  connection.all_said = true;
  connection.ends = std::min(connection.last, now + kGoodbye);
  return true;
}

}  // namespace hetero::metrics
