#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"

struct x509_store_st;

namespace hetero::storage {

// The certificate authorities that are trusted, read once for all connections: the system's are
// some hundred and a half, and reading them takes longer than the rest of a handshake. Thread-safe.
class Authorities {
 public:
  // Of a PEM file; an error names it.
  explicit Authorities(const std::string& file);

  const absl::Status& status() const { return status_; }
  // Makes them those of an SSL_CTX. Only where status() is OK.
  void TrustedBy(void* ssl_context) const;

 private:
  struct Free {
    void operator()(x509_store_st* store) const;
  };
  absl::Status status_;
  std::unique_ptr<x509_store_st, Free> store_;
};

}  // namespace hetero::storage
