#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace hetero::base {

// How gRPC ports are protected. Plain text has to be asked for by name: it is for processes of one
// machine, and for jobs that switch TLS off. Mutual TLS reads PEM files: the certificate authority,
// and this process's leaf and key. With `peer_uris` the other side is told by the URI in its
// certificate, as in PeerTls; without, by its host name, and clients by the authority alone.
struct TlsOptions {
  bool plain_text = false;
  std::string ca_file;
  std::string certificate_file;
  std::string key_file;
  std::vector<std::string> peer_uris;
};

// Errors name the file that is missing, unreadable, not PEM, or whose key does not match. A server
// with mutual TLS refuses clients without a certificate of the same authority.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(const TlsOptions&);
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const TlsOptions&);

// Mutual TLS, version 1.2 or newer, between peers that are known by a URI in their certificates
// (subject alternative name) and whose addresses were unknown when those were signed: host names
// are not compared. PEM texts, held in memory; `ca_pem` may hold several authorities.
struct PeerTls {
  std::string ca_pem;
  std::string certificate_pem;
  std::string key_pem;
  // The other side must show one of these, letter by letter; an empty list lets nobody in. A client
  // that is refused is logged (refused_peers.h).
  std::vector<std::string> allowed_uris;
};

// kInvalidArgument names the text that is not PEM, or that the key does not match. A peer that is
// refused makes calls fail with UNAVAILABLE.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakePeerChannelCredentials(
    const PeerTls&);
// Clients without a certificate are refused.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakePeerServerCredentials(const PeerTls&);

}  // namespace hetero::base
