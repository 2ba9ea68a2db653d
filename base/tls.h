#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace hetero::base {

// How gRPC ports are protected. Plain text has to be asked for by name: it is for processes of one
// machine only. Mutual TLS reads PEM files: the certificate authority, and this process's leaf and
// key.
struct TlsOptions {
  bool plain_text = false;
  std::string ca_file;
  std::string certificate_file;
  std::string key_file;
};

// Errors name the file that is missing, unreadable, not PEM, or whose key does not match. A server
// with mutual TLS refuses clients without a certificate of the same authority.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(const TlsOptions&);
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const TlsOptions&);

}  // namespace hetero::base
