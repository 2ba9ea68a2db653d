#include "runtime/feed/transport/data_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/rand.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hetero::feed {
namespace {

constexpr size_t kAheadBytes = 256 << 10;   // several small batches, or the start of a large one
constexpr size_t kDirectBytes = 32 << 10;   // from which on a read need not go through that
constexpr unsigned kUnansweredMs = 15'000;  // as long as gRPC's pings take to find a dead peer

absl::Status Closed() {
  return absl::UnavailableError("the other side closed the data connection");
}

absl::Status NotSecured() {
  return absl::UnavailableError("data connection: its TLS handshake has failed");
}

absl::Status Errno(const char* what) {
  if (errno == EAGAIN)
    return absl::DeadlineExceededError(absl::StrCat(what, ": no answer in time"));
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

}  // namespace

std::string NewDataKey() {
  std::string key(kDataKeyBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(key.data()), kDataKeyBytes) != 1) key.clear();
  return key;
}

DataSocket::DataSocket(int fd) : fd_(fd) {
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnansweredMs, sizeof kUnansweredMs);
}

DataSocket::~DataSocket() { close(fd_); }

absl::StatusOr<std::unique_ptr<DataSocket>> DataSocket::Create(int family) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Errno("socket");
  return std::make_unique<DataSocket>(fd);
}

absl::Status DataSocket::Connect(const sockaddr_storage& address, socklen_t size,
                                 base::Duration timeout) {
  SetBlocking(false);
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    if (errno != EINPROGRESS) return Errno("connect");
    pollfd ready = {.fd = fd_, .events = POLLOUT, .revents = 0};
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
    if (poll(&ready, 1, static_cast<int>(ms)) <= 0) {
      return absl::DeadlineExceededError("connect: no answer in time");
    }
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &length);
    errno = error;
    if (error != 0) return Errno("connect");
  }
  SetBlocking(true);
  return absl::OkStatus();
}

void DataSocket::SetBlocking(bool blocking) const {
  const int flags = fcntl(fd_, F_GETFL);
  fcntl(fd_, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

void DataSocket::SetTimeout(base::Duration timeout) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(timeout).count();
  const timeval value = {.tv_sec = us / 1'000'000, .tv_usec = us % 1'000'000};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &value, sizeof value);
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &value, sizeof value);
}

void DataSocket::SetDeadline(const base::Clock* clock, base::Instant deadline) {
  clock_ = clock;
  deadline_ = deadline;
}

absl::Status DataSocket::WaitFor(short events) const {
  while (true) {
    const base::Duration left = deadline_ - clock_->Now();
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    pollfd ready = {.fd = fd_, .events = events, .revents = 0};
    const int found = ms <= 0 ? 0 : poll(&ready, 1, static_cast<int>(ms));
    if (found > 0) return absl::OkStatus();
    if (found < 0 && errno == EINTR) continue;
    if (found < 0) return Errno("data connection");
    return absl::DeadlineExceededError("data connection: its greeting took too long");
  }
}

absl::Status DataSocket::Secure(const std::string& key, Side side) {
  if (!ahead_.empty()) return absl::InternalError("TLS behind what was read in plain text");
  secure_ = true;
  if (clock_ != nullptr) SetBlocking(false);
  absl::StatusOr<TrafficSecrets> secrets = ShakeHands(fd_, key, side, [&](short events) {
    return clock_ != nullptr ? WaitFor(events)
                             : absl::DeadlineExceededError("TLS handshake: no answer in time");
  });
  if (clock_ != nullptr) SetBlocking(true);
  HETERO_RETURN_IF_ERROR(secrets.status());
  HETERO_ASSIGN_OR_RETURN(RecordKey received,
                          RecordKey::Of(std::move(secrets->received), AesGcm::Direction::kOpen));
  HETERO_ASSIGN_OR_RETURN(RecordKey sent,
                          RecordKey::Of(std::move(secrets->sent), AesGcm::Direction::kSeal));
  reader_ = std::make_unique<RecordReader>(std::move(received));
  writer_ = std::make_unique<RecordWriter>(std::move(sent));
  return absl::OkStatus();
}

void DataSocket::ReadAhead() {
  if (!secure_) ahead_.resize(kAheadBytes);  // which has what was opened
}

size_t DataSocket::left() const { return most_bytes_; }

absl::StatusOr<size_t> DataSocket::ReadSome(void* out, size_t size) {
  if (!secure_) return Receive(out, size);
  if (reader_ == nullptr) return NotSecured();
  return reader_->Read(static_cast<uint8_t*>(out), size,
                       [this](uint8_t* to, size_t most) { return Receive(to, most); });
}

absl::StatusOr<size_t> DataSocket::Receive(void* out, size_t size) {
  while (true) {
    if (clock_ != nullptr) HETERO_RETURN_IF_ERROR(WaitFor(POLLIN));
    const ssize_t got = recv(fd_, out, size, 0);
    if (got > 0) return static_cast<size_t>(got);
    if (got == 0) return Closed();
    if (errno != EINTR) return Errno("data connection");
  }
}

absl::Status DataSocket::Read(void* out, size_t size) {
  auto* to = static_cast<uint8_t*>(out);
  while (size > 0) {
    if (ahead_begin_ == ahead_end_ && size < kDirectBytes && !ahead_.empty()) {
      HETERO_ASSIGN_OR_RETURN(ahead_end_, ReadSome(ahead_.data(), ahead_.size()));
      ahead_begin_ = 0;
    }
    size_t part = std::min(size, ahead_end_ - ahead_begin_);
    if (part > 0) {
      std::memcpy(to, ahead_.data() + ahead_begin_, part);
      ahead_begin_ += part;
    } else {
      HETERO_ASSIGN_OR_RETURN(part, ReadSome(to, size));
    }
    to += part;
    size -= part;
  }
  return absl::OkStatus();
}

absl::Status DataSocket::Write(const std::vector<WirePart>& parts) {
  if (secure_) {
    if (writer_ == nullptr) return NotSecured();
    return writer_->Write(parts, [this](const uint8_t* bytes, size_t size) {
      return Send({{const_cast<uint8_t*>(bytes), size}});
    });
  }
  std::vector<iovec> left;
  for (const WirePart& part : parts) {
    if (part.size > 0) left.push_back({const_cast<void*>(part.data), part.size});
  }
  return Send(std::move(left));
}

absl::Status DataSocket::Send(std::vector<iovec> left) {
  size_t first = 0;
  while (first < left.size()) {
    msghdr message = {};
    message.msg_iov = left.data() + first;
    message.msg_iovlen = std::min<size_t>(left.size() - first, IOV_MAX);
    const ssize_t result = sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (result < 0 && errno == EINTR) continue;
    if (result < 0) return Errno("data connection");
    auto sent = static_cast<size_t>(result);
    while (first < left.size() && sent >= left[first].iov_len) sent -= left[first++].iov_len;
    if (sent > 0) {
      left[first].iov_base = static_cast<uint8_t*>(left[first].iov_base) + sent;
      left[first].iov_len -= sent;
    }
  }
  return absl::OkStatus();
}

void DataSocket::Shutdown() { shutdown(fd_, SHUT_RDWR); }

}  // namespace hetero::feed
