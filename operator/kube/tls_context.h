#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"

namespace hetero::kube {

// How connections to the API server are protected. Immutable, apart from the note of what last went
// wrong; must outlive the contexts it configured. Safe from any thread.
class TlsSettings {
 public:
  // PEM texts. `ca` empty: the system's authorities. `certificate` empty: none is shown.
  TlsSettings(std::string ca, std::string certificate, std::string key)
      : ca_(std::move(ca)), certificate_(std::move(certificate)), key_(std::move(key)) {}

  // Sets TLS 1.2 as the oldest version, whom to trust (and nobody else) and what to show. Errors
  // say which of the three texts cannot be used.
  absl::Status Configure(SSL_CTX* context);

  const std::string& certificate() const { return certificate_; }
  const std::string& key() const { return key_; }
  // Why the last server certificate that was refused was; empty when none was.
  std::string last_refusal() const;

 private:
  static int Verify(X509_STORE_CTX* store, void* self);

  const std::string ca_, certificate_, key_;
  mutable std::mutex mutex_;  // guards last_refusal_
  std::string last_refusal_;
};

// OpenSSL's words for `error`, empty when it is none of its error codes.
std::string TlsErrorText(unsigned long error);
// The peer refused our certificate, or wants one.
bool IsCredentialAlert(unsigned long error);
bool IsCertificateRefusal(unsigned long error);

}  // namespace hetero::kube
