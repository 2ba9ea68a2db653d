#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "base/pem.h"
#include "base/status_macros.h"
#include "base/tls.h"

namespace hetero::base {
namespace {

namespace tls = grpc::experimental;

// Runs after the handshake, which has checked the chain up to `ca_pem` already.
class UriVerifier : public tls::ExternalCertificateVerifier {
 public:
  explicit UriVerifier(std::vector<std::string> allowed) : allowed_(std::move(allowed)) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/, grpc::Status* verdict) override {
    std::string shown;
    for (const grpc::string_ref& uri : request->uri_names()) {
      const std::string_view name(uri.data(), uri.size());
      if (std::find(allowed_.begin(), allowed_.end(), name) != allowed_.end()) {
        *verdict = grpc::Status::OK;
        return true;
      }
      shown.append(shown.empty() ? "" : ", ").append(name);
    }
    *verdict = grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                            "the peer's certificate is for " + (shown.empty() ? "no URI" : shown) +
                                ", wanted is " + Wanted());
    return true;
  }

  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}  // Verify() never waits

 private:
  std::string Wanted() const {
    std::string wanted;
    for (const std::string& uri : allowed_) wanted.append(wanted.empty() ? "" : " or ").append(uri);
    return wanted.empty() ? "nobody" : wanted;
  }

  const std::vector<std::string> allowed_;
};

template <typename Options>
void Fill(const PeerTls& peer, Options& options) {
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<UriVerifier>(peer.allowed_uris));
  options.set_check_call_host(false);
}

absl::StatusOr<std::shared_ptr<tls::CertificateProviderInterface>> Provider(const PeerTls& peer) {
  HETERO_RETURN_IF_ERROR(CheckPem({peer.ca_pem, peer.certificate_pem, peer.key_pem},
                                  {"of the peers", "of this process", "of this process"}));
  const tls::IdentityKeyCertPair own{peer.key_pem, peer.certificate_pem};
  return std::make_shared<tls::StaticDataCertificateProvider>(peer.ca_pem, std::vector{own});
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakePeerChannelCredentials(
    const PeerTls& peer) {
  HETERO_ASSIGN_OR_RETURN(std::shared_ptr<tls::CertificateProviderInterface> provider,
                          Provider(peer));
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(provider);
  Fill(peer, options);
  options.set_verify_server_certs(true);
  return tls::TlsCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakePeerServerCredentials(
    const PeerTls& peer) {
  HETERO_ASSIGN_OR_RETURN(std::shared_ptr<tls::CertificateProviderInterface> provider,
                          Provider(peer));
  tls::TlsServerCredentialsOptions options(provider);
  Fill(peer, options);
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return tls::TlsServerCredentials(options);
}

}  // namespace hetero::base
