#include "runtime/feed/transport/tls_handshake.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "runtime/feed/transport/tls_secret.h"

namespace hetero::feed {
namespace {

constexpr char kCiphers[] = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char kCipherId[] = {0x13, 0x01};  // the same in RFC 8446
constexpr unsigned char kKeyName[] = "hetero-data";  // each connection has a key of its own
constexpr size_t kKeyBytes = 32;

// TLS writes with write(2), which would end the process when the other side has gone.
void BlockBrokenPipeSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

class OpenSslHandshake : public TlsHandshake {
 public:
  OpenSslHandshake(std::string key, TlsSide side) : key_(std::move(key)), side_(side) {}

  absl::Status Prepare(int fd);
  absl::StatusOr<State> GoOn() override;
  absl::StatusOr<TrafficSecrets> TakeSecrets() override;

 private:
  static OpenSslHandshake* Of(const SSL* tls) {
    return static_cast<OpenSslHandshake*>(SSL_get_app_data(tls));
  }
  static int FindKey(SSL* tls, const unsigned char* id, size_t size, SSL_SESSION** session);
  static int UseKey(SSL* tls, const EVP_MD* digest, const unsigned char** id, size_t* size,
                    SSL_SESSION** session);
  static void TakeSecret(const SSL* tls, const char* line);
  SSL_SESSION* KeySession() const;

  const std::string key_;
  const TlsSide side_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{nullptr, SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_{nullptr, SSL_free};
  Secret of_client_, of_server_;
};

SSL_SESSION* OpenSslHandshake::KeySession() const {
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

int OpenSslHandshake::FindKey(SSL* tls, const unsigned char* id, size_t size,
                              SSL_SESSION** session) {
  *session = nullptr;  // another name: a handshake without this key, which then fails
  if (size == sizeof kKeyName && std::memcmp(id, kKeyName, size) == 0) {
    *session = Of(tls)->KeySession();
  }
  return 1;
}

int OpenSslHandshake::UseKey(SSL* tls, const EVP_MD* /*digest*/, const unsigned char** id,
                             size_t* size, SSL_SESSION** session) {
  *session = Of(tls)->KeySession();
  *id = kKeyName;
  *size = sizeof kKeyName;
  return *session == nullptr ? 0 : 1;
}

// OpenSSL's way to tell traffic secrets: lines of a key log, "LABEL RANDOM SECRET", both in hex
// (draft-ietf-tls-keylogfile). Nothing of them is written anywhere.
void OpenSslHandshake::TakeSecret(const SSL* tls, const char* line) {
  std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 3) return;
  OpenSslHandshake* const self = Of(tls);
  if (words[0] == "CLIENT_TRAFFIC_SECRET_0") {
    self->of_client_ = Secret(absl::HexStringToBytes(words[2]));
  }
  if (words[0] == "SERVER_TRAFFIC_SECRET_0") {
    self->of_server_ = Secret(absl::HexStringToBytes(words[2]));
  }
}

absl::Status OpenSslHandshake::Prepare(int fd) {
  context_.reset(SSL_CTX_new(TLS_method()));
  if (context_ == nullptr || key_.size() != kKeyBytes ||
      SSL_CTX_set_min_proto_version(context_.get(), TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context_.get(), kCiphers) != 1) {
    return absl::UnavailableError("TLS 1.3 with a key cannot be set up");
  }
  // Whatever openssl.cnf says: the kernel must not seal what is sealed here, and a key alone would
  // open what was recorded.
  SSL_CTX_clear_options(context_.get(), SSL_OP_ENABLE_KTLS | SSL_OP_ALLOW_NO_DHE_KEX);
  // Nothing behind the handshake may be read or written here.
  SSL_CTX_set_read_ahead(context_.get(), 0);
  SSL_CTX_set_num_tickets(context_.get(), 0);
  SSL_CTX_set_session_cache_mode(context_.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_psk_find_session_callback(context_.get(), &OpenSslHandshake::FindKey);
  SSL_CTX_set_psk_use_session_callback(context_.get(), &OpenSslHandshake::UseKey);
  SSL_CTX_set_keylog_callback(context_.get(), &OpenSslHandshake::TakeSecret);
  // A trainer takes nobody's certificate, and a worker has none to show: whoever does not know the
  // key fails the handshake.
  if (side_ == TlsSide::kTrainer) SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  tls_.reset(SSL_new(context_.get()));
  if (tls_ == nullptr || SSL_set_fd(tls_.get(), fd) != 1) {
    return absl::UnavailableError("TLS cannot be set up");
  }
  SSL_set_app_data(tls_.get(), this);
  return absl::OkStatus();
}

absl::StatusOr<TlsHandshake::State> OpenSslHandshake::GoOn() {
  BlockBrokenPipeSignal();
  while (true) {
    ERR_clear_error();
    const int done = side_ == TlsSide::kWorker ? SSL_accept(tls_.get()) : SSL_connect(tls_.get());
    if (done == 1) break;
    const int system = errno;
    switch (SSL_get_error(tls_.get(), done)) {
      case SSL_ERROR_WANT_READ:
        if (system == EINTR) continue;
        return State::kReads;
      case SSL_ERROR_WANT_WRITE:
        if (system == EINTR) continue;
        return State::kWrites;
      case SSL_ERROR_ZERO_RETURN:
        return absl::UnavailableError("the other side closed the data connection");
      case SSL_ERROR_SYSCALL:
        return absl::UnavailableError(system == 0
                                          ? std::string("the other side closed the data connection")
                                          : absl::StrCat("TLS handshake: ", std::strerror(system)));
      default: {
        const char* reason = ERR_reason_error_string(ERR_get_error());
        return absl::UnavailableError(
            absl::StrCat("TLS handshake: ", reason == nullptr ? "failed" : reason));
      }
    }
  }
  if (SSL_session_reused(tls_.get()) != 1) {
    return absl::UnavailableError("TLS handshake: not with the key of this connection");
  }
  if (SSL_has_pending(tls_.get()) != 0) {
    return absl::UnavailableError("TLS handshake: OpenSSL has read more than it");
  }
  return State::kDone;
}

absl::StatusOr<TrafficSecrets> OpenSslHandshake::TakeSecrets() {
  if (of_client_.size() != kTlsSecretBytes || of_server_.size() != kTlsSecretBytes) {
    return absl::UnavailableError("TLS handshake: OpenSSL told no traffic secrets");
  }
  const bool client = side_ == TlsSide::kTrainer;
  TrafficSecrets secrets;
  secrets.sent = std::move(client ? of_client_ : of_server_);
  secrets.received = std::move(client ? of_server_ : of_client_);
  return secrets;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TlsHandshake>> TlsHandshake::Begin(int fd, std::string key,
                                                                  TlsSide side) {
  auto handshake = std::make_unique<OpenSslHandshake>(std::move(key), side);
  HETERO_RETURN_IF_ERROR(handshake->Prepare(fd));
  return handshake;
}

}  // namespace hetero::feed
