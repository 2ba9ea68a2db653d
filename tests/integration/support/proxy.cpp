#include "tests/integration/support/proxy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <string>
#include <utility>

namespace hetero::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMostUnderway = 4 << 20;  // bytes kept for a receiver that does not read
constexpr std::chrono::milliseconds kRetransmission{200};
constexpr int kPollMilliseconds = 2;

int Dial(const std::string& target) {
  const size_t colon = target.rfind(':');
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(target.substr(colon + 1))));
  if (inet_pton(AF_INET, target.substr(0, colon).c_str(), &address.sin_addr) == 1 &&
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return fd;
  close(fd);
  return -1;
}

void Reset(int fd) {
  const linger hard = {.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  close(fd);
}

}  // namespace

// Bytes on their way in one direction.
struct Flow {
  struct Piece {
    Clock::time_point due;
    std::vector<char> bytes;
    size_t sent = 0;
  };
  std::deque<Piece> underway;
  int64_t size = 0;
  bool ended = false;  // the sender closed its side
};

struct Proxy::Connection {
  int client = -1;
  int server = -1;
  Flow down, up;
  double allowance = 0;  // bytes that the rate lets pass down now
  Clock::time_point filled = Clock::now();
  bool dead = false;

  ~Connection() {
    if (client >= 0) Reset(client);
    if (server >= 0) close(server);
  }
};

Proxy::Proxy(std::string target) : target_(std::move(target)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener_, 16), 0);
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Loop(); });
}

Proxy::~Proxy() {
  stop_ = true;
  thread_.join();
  connections_.clear();
  close(listener_);
}

std::string Proxy::address() const { return "127.0.0.1:" + std::to_string(port_); }

void Proxy::FlipBits(int64_t every_bytes, int64_t times) {
  flip_every_ = every_bytes;
  flips_left_ = times;
}

void Proxy::Accept() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const int server = Dial(target_);
  if (server < 0) return Reset(client);
  const int on = 1;
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  auto connection = std::make_unique<Connection>();
  connection->client = client;
  connection->server = server;
  connections_.push_back(std::move(connection));
  ++accepted_;
}

void Proxy::Damage(std::vector<char>* bytes) {
  if (flips_left_ <= 0) return;
  until_flip_ -= static_cast<int64_t>(bytes->size());
  if (until_flip_ > 0) return;
  until_flip_ = flip_every_;
  --flips_left_;
  (*bytes)[bytes->size() / 2] ^= 0x10;
}

void Proxy::Loop() {
  std::array<char, 65536> buffer;
  int64_t broken = 0;
  while (!stop_) {
    if (broken != break_requests_) {
      broken = break_requests_;
      connections_.clear();
    }
    std::vector<pollfd> fds;
    if (!cut_) fds.push_back({listener_, POLLIN, 0});
    for (const auto& c : connections_) {
      const auto wanted = [&](const Flow& in, const Flow& out) {
        const bool reads = !cut_ && !in.ended && in.size < kMostUnderway;
        const bool writes =
            !cut_ && !out.underway.empty() && out.underway.front().due <= Clock::now();
        return static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
      };
      fds.push_back({c->client, wanted(c->up, c->down), 0});
      fds.push_back({c->server, wanted(c->down, c->up), 0});
    }
    poll(fds.data(), fds.size(), kPollMilliseconds);
    if (cut_) continue;
    Accept();
    for (const auto& c : connections_) {
      const auto receive = [&](int from, Flow* flow, bool down) {
        if (flow->ended || flow->size >= kMostUnderway) return;
        const size_t most =
            std::min<size_t>(buffer.size(), static_cast<size_t>(piece_bytes_.load()));
        const ssize_t got = recv(from, buffer.data(), most, MSG_DONTWAIT);
        if (got == 0) flow->ended = true;
        if (got < 0 && errno != EAGAIN && errno != EINTR) c->dead = true;
        if (got <= 0) return;
        std::vector<char> bytes(buffer.data(), buffer.data() + got);
        if (down) {
          bytes_down_ += got;
          Damage(&bytes);
        }
        flow->size += got;
        const int64_t one_in = lost_one_in_;
        const bool lost = one_in > 0 && ++pieces_ % one_in == 0;
        flow->underway.push_back({Clock::now() + std::chrono::milliseconds(delay_ms_.load()) +
                                      (lost ? kRetransmission : std::chrono::milliseconds(0)),
                                  std::move(bytes)});
      };
      const auto pass = [&](int to, Flow* flow, bool limited) {
        while (!flow->underway.empty() && flow->underway.front().due <= Clock::now()) {
          Flow::Piece& piece = flow->underway.front();
          size_t most = piece.bytes.size() - piece.sent;
          if (limited) most = std::min(most, static_cast<size_t>(std::max(0.0, c->allowance)));
          if (most == 0) return;
          const ssize_t sent =
              send(to, piece.bytes.data() + piece.sent, most, MSG_DONTWAIT | MSG_NOSIGNAL);
          if (sent < 0 && errno != EAGAIN && errno != EINTR) c->dead = true;
          if (sent <= 0) return;
          if (limited) c->allowance -= static_cast<double>(sent);
          piece.sent += static_cast<size_t>(sent);
          if (piece.sent < piece.bytes.size()) return;
          flow->size -= static_cast<int64_t>(piece.bytes.size());
          flow->underway.pop_front();
        }
        if (flow->ended && flow->underway.empty()) c->dead = true;
      };
      const auto now = Clock::now();
      const auto rate = static_cast<double>(rate_.load());
      c->allowance = std::min(
          rate / 10, c->allowance + rate * std::chrono::duration<double>(now - c->filled).count());
      c->filled = now;
      receive(c->server, &c->down, /*down=*/true);
      receive(c->client, &c->up, /*down=*/false);
      pass(c->client, &c->down, /*limited=*/rate > 0);
      pass(c->server, &c->up, /*limited=*/false);
    }
    std::erase_if(connections_, [](const auto& c) { return c->dead; });
  }
}

}  // namespace hetero::testing
