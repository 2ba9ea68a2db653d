#include "runtime/feed/feed_listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/socket_address.h"
#include "base/status_macros.h"
#include "base/thread.h"

namespace hetero::feed {
namespace {

constexpr int kMostPending = 128;
constexpr auto kLook = std::chrono::milliseconds(200);
constexpr auto kFirstBytes = std::chrono::seconds(10);
constexpr base::Duration kEvictionWarningInterval = std::chrono::minutes(1);

struct HostPort {
  std::string host, port;
};

HostPort Split(const std::string& address) {
  const size_t colon = address.rfind(':');
  HostPort parts{address.substr(0, colon),
                 colon == std::string::npos ? "" : address.substr(colon + 1)};
  if (parts.host.starts_with('[') && parts.host.ends_with(']')) {
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  }
  return parts;
}

// -1 and errno.
int Listen(int family, const sockaddr* address, socklen_t size) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int on = 1, off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (bind(fd, address, size) == 0 && listen(fd, kMostPending) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

int Port(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

// For connections of which nothing comes: a child process may have the descriptor, too, and the
// other side would not hear of close() alone.
void GiveUp(int fd) {
  shutdown(fd, SHUT_RDWR);
  close(fd);
}

}  // namespace

struct FeedListener::Waiting {
  int fd = -1;
  base::Instant until;
};

absl::StatusOr<std::unique_ptr<FeedListener>> FeedListener::Bind(const std::string& address,
                                                                 base::Clock& clock,
                                                                 size_t most_waiting) {
  const HostPort parts = Split(address);
  std::vector<std::string> hosts = {parts.host};
  if (parts.host == "0.0.0.0") hosts.insert(hosts.begin(), "::");
  std::string reason;
  for (const std::string& host : hosts) {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
    addrinfo* found = nullptr;
    const int error = getaddrinfo(host.c_str(), parts.port.c_str(), &hints, &found);
    if (error != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot listen on ", address, ": ", gai_strerror(error)));
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, freeaddrinfo);
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
      const int fd = Listen(one->ai_family, one->ai_addr, one->ai_addrlen);
      if (fd >= 0) {
        return std::unique_ptr<FeedListener>(new FeedListener(fd, Port(fd), clock, most_waiting));
      }
      reason = std::strerror(errno);
      if (errno == EADDRINUSE) break;
    }
  }
  return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ", reason));
}

FeedListener::~FeedListener() {
  thread_.request_stop();
  shutdown(fd_, SHUT_RDWR);  // wakes poll()
  if (thread_.joinable()) thread_.join();
  close(fd_);
}

void FeedListener::Start(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

void FeedListener::Run(const std::stop_token& stop) {
  base::SetThreadName("feed-listener");
  std::vector<Waiting> waiting;
  std::vector<pollfd> polled;
  while (!stop.stop_requested()) {
    polled.assign(1, {.fd = fd_, .events = POLLIN, .revents = 0});
    for (const Waiting& one : waiting)
      polled.push_back({.fd = one.fd, .events = POLLIN, .revents = 0});
    const int ready = poll(polled.data(), polled.size(), kLook.count());
    if (stop.stop_requested()) break;
    std::vector<Waiting> still;
    for (size_t i = 0; i < waiting.size(); ++i) {
      const bool spoke = ready > 0 && polled[i + 1].revents != 0;
      if (spoke ? !Sort(waiting[i]) : clock_.Now() < waiting[i].until) {
        still.push_back(waiting[i]);
      } else if (!spoke) {
        GiveUp(waiting[i].fd);
      }
    }
    waiting.swap(still);
    if (ready > 0 && polled[0].revents != 0) Accept(&waiting, stop);
  }
  for (const Waiting& one : waiting) GiveUp(one.fd);
}

void FeedListener::Accept(std::vector<Waiting>* waiting, const std::stop_token& stop) {
  const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    // No file descriptor is left, say: poll() would come back at once.
    if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
      clock_.SleepFor(kLook, stop);
    }
    return;
  }
  const int enough = kPreambleBytes, on = 1;
  setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &enough, sizeof enough);  // what poll() waits for
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (waiting->size() >= most_waiting_) EvictOldest(waiting);
  waiting->push_back({fd, clock_.Now() + kFirstBytes});
}

void FeedListener::EvictOldest(std::vector<Waiting>* waiting) {
  const int oldest = waiting->front().fd;
  ++evicted_;
  if (const base::Instant now = clock_.Now(); now >= next_warning_) {
    next_warning_ = now + kEvictionWarningInterval;
    const std::string peer = base::PeerAddress(oldest);
    log::Warning("connections that say nothing are closed before their time: too many dial",
                 {{"waiting", waiting->size()},
                  {"closed", std::exchange(evicted_, 0)},
                  {"oldest", peer.empty() ? "unknown" : peer}});
  }
  GiveUp(oldest);
  waiting->erase(waiting->begin());
}

bool FeedListener::Sort(const Waiting& connection) const {
  std::array<char, kPreambleBytes> first = {};
  const ssize_t got = recv(connection.fd, first.data(), first.size(), MSG_PEEK);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    GiveUp(connection.fd);
    return true;
  }
  const int at_once = 1;
  setsockopt(connection.fd, SOL_SOCKET, SO_RCVLOWAT, &at_once, sizeof at_once);
  const std::string_view begins(first.data(), static_cast<size_t>(got));
  for (const Route& route : callbacks_.routes) {
    if (begins != route.preamble) continue;
    fcntl(connection.fd, F_SETFL, fcntl(connection.fd, F_GETFL) & ~O_NONBLOCK);
    route.take(connection.fd);
    return true;
  }
  callbacks_.to_grpc(fd_, connection.fd);
  return true;
}

}  // namespace hetero::feed
