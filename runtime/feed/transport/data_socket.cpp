#include "runtime/feed/transport/data_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hetero::feed {
namespace {

constexpr size_t kAheadBytes = 256 << 10;   // several small batches, or the start of a large one
constexpr size_t kDirectBytes = 32 << 10;   // from which on a read need not go through that
constexpr unsigned kUnansweredMs = 15'000;  // as long as gRPC's pings take to find a dead peer
// Read and written at once; a record has 16 KB. OpenSSL moves what it read ahead with every record.
constexpr size_t kTlsReadBytes = 36 << 10;
constexpr int kTlsWriteBytes = 128 << 10;
constexpr char kCiphers[] = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char kCipherId[] = {0x13, 0x01};  // the same in RFC 8446
constexpr unsigned char kKeyName[] = "hetero-data";  // each connection has a key of its own

absl::Status Closed() {
  return absl::UnavailableError("the other side closed the data connection");
}

absl::Status Errno(const char* what) {
  if (errno == EAGAIN)
    return absl::DeadlineExceededError(absl::StrCat(what, ": no answer in time"));
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// TLS writes with write(2), which would end the process when the other side has gone.
void BlockBrokenPipeSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
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

DataSocket::~DataSocket() {
  tls_.reset();
  close(fd_);
}

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

SSL_SESSION* DataSocket::KeySession() const {
  SSL_SESSION* session = SSL_SESSION_new();
  const SSL_CIPHER* cipher = SSL_CIPHER_find(tls_.get(), kCipherId);
  if (session == nullptr || cipher == nullptr ||
      SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key_.data()),
                                  key_.size()) != 1 ||
      SSL_SESSION_set_cipher(session, cipher) != 1 ||
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) != 1) {
    SSL_SESSION_free(session);
    return nullptr;
  }
  return session;
}

int DataSocket::FindKey(SSL* tls, const unsigned char* id, size_t size, SSL_SESSION** session) {
  *session = nullptr;  // another name: a handshake without this key, which then fails
  if (size == sizeof kKeyName && std::memcmp(id, kKeyName, size) == 0) {
    *session = static_cast<const DataSocket*>(SSL_get_app_data(tls))->KeySession();
  }
  return 1;
}

int DataSocket::UseKey(SSL* tls, const EVP_MD* /*digest*/, const unsigned char** id, size_t* size,
                       SSL_SESSION** session) {
  *session = static_cast<const DataSocket*>(SSL_get_app_data(tls))->KeySession();
  *id = kKeyName;
  *size = sizeof kKeyName;
  return *session == nullptr ? 0 : 1;
}

absl::Status DataSocket::Secure(const std::string& key, Side side) {
  BlockBrokenPipeSignal();
  key_ = key;
  context_.reset(SSL_CTX_new(TLS_method()));
  if (context_ == nullptr || key.size() != kDataKeyBytes ||
      SSL_CTX_set_min_proto_version(context_.get(), TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context_.get(), kCiphers) != 1) {
    return absl::UnavailableError("TLS 1.3 with a key cannot be set up");
  }
  SSL_CTX_set_read_ahead(context_.get(), 1);
  SSL_CTX_set_default_read_buffer_len(context_.get(), kTlsReadBytes);
  SSL_CTX_set_num_tickets(context_.get(), 0);
  SSL_CTX_set_session_cache_mode(context_.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_psk_find_session_callback(context_.get(), &DataSocket::FindKey);
  SSL_CTX_set_psk_use_session_callback(context_.get(), &DataSocket::UseKey);
  // A trainer takes nobody's certificate, and a worker has none to show: whoever does not know the
  // key fails the handshake.
  if (side == Side::kTrainer) SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  tls_.reset(SSL_new(context_.get()));
  BIO* const socket = BIO_new_socket(fd_, BIO_NOCLOSE);
  BIO* const buffer = BIO_new(BIO_f_buffer());
  if (tls_ == nullptr || socket == nullptr || buffer == nullptr ||
      BIO_set_write_buffer_size(buffer, kTlsWriteBytes) != 1 || BIO_up_ref(socket) != 1) {
    return absl::UnavailableError("TLS cannot be set up");
  }
  BIO_push(buffer, socket);
  SSL_set0_rbio(tls_.get(), socket);
  SSL_set0_wbio(tls_.get(), buffer);
  SSL_set_app_data(tls_.get(), this);
  HETERO_RETURN_IF_ERROR(Handshake(side));
  if (SSL_session_reused(tls_.get()) != 1) {
    return absl::UnavailableError("TLS handshake: not with the key of this connection");
  }
  return absl::OkStatus();
}

absl::Status DataSocket::Handshake(Side side) {
  if (clock_ != nullptr) SetBlocking(false);
  absl::Status status;
  while (status.ok()) {
    ERR_clear_error();
    const int done = side == Side::kWorker ? SSL_accept(tls_.get()) : SSL_connect(tls_.get());
    if (done == 1) break;
    const int system = errno;
    const int error = SSL_get_error(tls_.get(), done);
    const bool waits = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
    errno = system;
    status = waits && clock_ != nullptr ? WaitFor(error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT)
                                        : TlsError("TLS handshake", done);
  }
  if (clock_ != nullptr) SetBlocking(true);
  return status;
}

absl::Status DataSocket::TlsError(const char* what, int result) {
  const int system = errno;
  switch (SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_ZERO_RETURN:
      return Closed();
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return absl::DeadlineExceededError(absl::StrCat(what, ": no answer in time"));
    case SSL_ERROR_SYSCALL:
      errno = system;
      return system == 0 ? Closed() : Errno(what);
    default: {
      const unsigned long code = ERR_get_error();
      const char* reason = ERR_reason_error_string(code);
      return absl::UnavailableError(
          absl::StrCat(what, ": ", reason == nullptr ? "failed" : reason));
    }
  }
}

void DataSocket::ReadAhead() { ahead_.resize(kAheadBytes); }

size_t DataSocket::left() const { return most_bytes_; }

absl::StatusOr<size_t> DataSocket::ReadSome(void* out, size_t size) {
  if (tls_ != nullptr) {
    ERR_clear_error();
    size_t got = 0;
    const int done = SSL_read_ex(tls_.get(), out, size, &got);
    if (done != 1) return TlsError("data connection", done);
    return got;
  }
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
  if (tls_ != nullptr) {
    for (const WirePart& part : parts) {
      size_t sent = 0;
      if (part.size == 0) continue;
      ERR_clear_error();
      const int done = SSL_write_ex(tls_.get(), part.data, part.size, &sent);
      if (done != 1) return TlsError("data connection", done);
    }
    if (BIO_flush(SSL_get_wbio(tls_.get())) != 1) return Errno("data connection");
    return absl::OkStatus();
  }
  std::vector<iovec> left;
  for (const WirePart& part : parts) {
    if (part.size > 0) left.push_back({const_cast<void*>(part.data), part.size});
  }
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
