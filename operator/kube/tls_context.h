#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"

namespace hetero::kube {

// How connections to the API server are protected. Must outlive the connections made with it. Safe
// from any thread.
class TlsSettings {
 public:
  // PEM texts. `ca` empty: the system's authorities. `certificate` empty: none is shown.
  // `server_name`: a name or an address that the server's certificate must be made out to.
  TlsSettings(std::string ca, std::string certificate, std::string key, std::string server_name)
      : ca_(std::move(ca)),
        certificate_(std::move(certificate)),
        key_(std::move(key)),
        server_name_(std::move(server_name)) {}

  TlsSettings(const TlsSettings&) = delete;
  TlsSettings& operator=(const TlsSettings&) = delete;

  // One context for all connections, with a reference of the caller's own: TLS 1.2 as the oldest
  // version, whom to trust (and nobody else) and what to show. Errors say which of the three texts
  // cannot be used.
  absl::StatusOr<SSL_CTX*> SharedContext();

  // Why the last server certificate that was refused was; empty when none was.
  std::string last_refusal() const;

 private:
  static int Verify(X509_STORE_CTX* store, void* self);

  struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  using Context = std::unique_ptr<SSL_CTX, FreeContext>;
  absl::StatusOr<Context> MakeContext();

  const std::string ca_, certificate_, key_, server_name_;
  mutable base::Mutex mutex_;
  Context context_ ABSL_GUARDED_BY(mutex_);
  std::string last_refusal_ ABSL_GUARDED_BY(mutex_);
};

// An IPv4 or IPv6 address, without brackets.
bool IsAddress(const std::string& host);

// OpenSSL's words for `error`, empty when it is none of its error codes.
std::string TlsErrorText(unsigned long error);
// The peer refused our certificate, or wants one.
bool IsCredentialAlert(unsigned long error);
bool IsCertificateRefusal(unsigned long error);

}  // namespace hetero::kube
