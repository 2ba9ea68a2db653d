#include "runtime/feed/transport/data_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/rand.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hetero::feed {
namespace {

constexpr size_t kAheadBytes = 16 << 10;    // headers, and little of what follows them
constexpr unsigned kUnansweredMs = 15'000;  // as long as gRPC's pings take to find a dead peer
constexpr size_t kMostVectors = 64;         // of a call

absl::Status Closed() {
  return absl::UnavailableError("the other side closed the data connection");
}

absl::Status NotSecured() {
  return absl::UnavailableError("data connection: its TLS handshake has failed");
}

absl::Status Errno(const char* what) {
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
  fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
}

DataSocket::~DataSocket() { close(fd_); }

absl::StatusOr<std::unique_ptr<DataSocket>> DataSocket::Create(int family) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Errno("socket");
  return std::make_unique<DataSocket>(fd);
}

absl::Status DataSocket::Connect(const sockaddr_storage& address, socklen_t size) {
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), size) == 0 ||
      errno == EINPROGRESS || errno == EINTR) {
    return absl::OkStatus();
  }
  return Errno("connect");
}

absl::Status DataSocket::Connected() const {
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &length);
  errno = error;
  return error == 0 ? absl::OkStatus() : Errno("connect");
}

absl::Status DataSocket::Secure(const std::string& key, TlsSide side) {
  if (!ahead_.empty()) return absl::InternalError("TLS behind what was read in plain text");
  secure_ = true;
  HETERO_ASSIGN_OR_RETURN(handshake_, TlsHandshake::Begin(fd_, key, side));
  return absl::OkStatus();
}

absl::StatusOr<TlsHandshake::State> DataSocket::ShakeHands() {
  if (handshake_ == nullptr) return NotSecured();
  HETERO_ASSIGN_OR_RETURN(const TlsHandshake::State state, handshake_->GoOn());
  if (state != TlsHandshake::State::kDone) return state;
  HETERO_ASSIGN_OR_RETURN(TrafficSecrets secrets, handshake_->TakeSecrets());
  handshake_.reset();
  HETERO_ASSIGN_OR_RETURN(RecordKey received,
                          RecordKey::Of(std::move(secrets.received), AesGcm::Direction::kOpen));
  HETERO_ASSIGN_OR_RETURN(RecordKey sent,
                          RecordKey::Of(std::move(secrets.sent), AesGcm::Direction::kSeal));
  reader_ = std::make_unique<RecordReader>(std::move(received));
  writer_ = std::make_unique<RecordWriter>(std::move(sent));
  return state;
}

void DataSocket::ReadAhead() {
  if (!secure_) ahead_.resize(kAheadBytes);  // which has what was opened
}

absl::StatusOr<size_t> DataSocket::Receive(void* out, size_t size) {
  if (drained_) return 0;
  while (true) {
    const ssize_t got = recv(fd_, out, size, MSG_DONTWAIT);
    if (got == 0) return Closed();
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return Errno("data connection");
    drained_ = got < static_cast<ssize_t>(size);
    return got < 0 ? 0 : static_cast<size_t>(got);
  }
}

absl::StatusOr<size_t> DataSocket::ReceiveAhead(void* out, size_t size) {
  if (drained_) return 0;
  std::array<iovec, 2> places = {{{out, size}, {ahead_.data(), ahead_.size()}}};
  while (true) {
    const ssize_t got = readv(fd_, places.data(), places.size());
    if (got == 0) return Closed();
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return Errno("data connection");
    const size_t all = got < 0 ? 0 : static_cast<size_t>(got);
    drained_ = all < size + ahead_.size();
    ahead_begin_ = 0;
    ahead_end_ = all - std::min(all, size);
    return std::min(all, size);
  }
}

absl::StatusOr<size_t> DataSocket::Read(void* out, size_t size) {
  if (secure_) {
    if (reader_ == nullptr) return NotSecured();
    return reader_->Read(static_cast<uint8_t*>(out), size,
                         [this](uint8_t* to, size_t most) { return Receive(to, most); });
  }
  const size_t there = std::min(size, ahead_end_ - ahead_begin_);
  if (there > 0) {
    std::memcpy(out, ahead_.data() + ahead_begin_, there);
    ahead_begin_ += there;
    return there;
  }
  return ahead_.empty() ? Receive(out, size) : ReceiveAhead(out, size);
}

absl::Status DataSocket::CheckSilent() const {
  char byte = 0;
  const ssize_t got = recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got == 0) return Closed();
  if (got > 0) return absl::UnavailableError("the other side speaks out of turn");
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? absl::OkStatus()
                                                                   : Errno("data connection");
}

void DataSocket::Write(std::vector<WirePart> parts) {
  part_ = 0;
  parts_.clear();
  if (secure_) {
    if (writer_ != nullptr) writer_->Begin(std::move(parts));
  } else {
    parts_ = std::move(parts);
  }
}

absl::StatusOr<bool> DataSocket::Flush() {
  size_t most = std::numeric_limits<size_t>::max();
  HETERO_ASSIGN_OR_RETURN(const Flushed flushed, FlushSome(&most));
  return flushed == Flushed::kAll;
}

absl::StatusOr<DataSocket::Flushed> DataSocket::FlushSome(size_t* most) {
  if (secure_ && writer_ == nullptr) return NotSecured();
  while (true) {
    HETERO_ASSIGN_OR_RETURN(const Flushed flushed, Send(most));
    if (flushed != Flushed::kAll || !secure_) return flushed;
    if (*most == 0) return Flushed::kEnough;
    HETERO_ASSIGN_OR_RETURN(const WirePart sealed, writer_->Next());
    if (sealed.size == 0) return Flushed::kAll;
    parts_.assign(1, sealed);
    part_ = 0;
  }
}

absl::StatusOr<DataSocket::Flushed> DataSocket::Send(size_t* most) {
  std::array<iovec, kMostVectors> vectors;
  while (true) {
    size_t count = 0, bytes = 0;
    bool any = false;
    for (size_t at = part_; at < parts_.size() && count < vectors.size(); ++at) {
      const WirePart& part = parts_[at];
      any = any || part.size > 0;
      const size_t size = std::min(part.size, *most - bytes);
      if (size > 0) vectors[count++] = {const_cast<void*>(part.data), size};
      bytes += size;
    }
    if (!any) return Flushed::kAll;
    if (count == 0) return Flushed::kEnough;
    msghdr message = {};
    message.msg_iov = vectors.data();
    message.msg_iovlen = count;
    const ssize_t result = sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (result < 0 && errno == EINTR) continue;
    if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Flushed::kBlocked;
    if (result < 0) return Errno("data connection");
    auto sent = static_cast<size_t>(result);
    *most -= sent;
    while (part_ < parts_.size() && sent >= parts_[part_].size) sent -= parts_[part_++].size;
    if (sent > 0) {
      WirePart& part = parts_[part_];
      part.data = static_cast<const uint8_t*>(part.data) + sent;
      part.size -= sent;
    }
  }
}

void DataSocket::Shutdown() { shutdown(fd_, SHUT_RDWR); }

}  // namespace hetero::feed
