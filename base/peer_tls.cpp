#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/peer_chain.h"
#include "base/pem.h"
#include "base/refused_peers.h"
#include "base/status_macros.h"
#include "base/tls.h"

namespace hetero::base {
namespace {

namespace tls = grpc::experimental;

std::string Joined(const std::vector<std::string>& uris, const char* between, const char* none) {
  std::string joined;
  for (const std::string& uri : uris) joined.append(joined.empty() ? "" : between).append(uri);
  return joined.empty() ? none : joined;
}

// Runs after the handshake, which has proved that the peer holds the key of its certificate. A
// client checks the server's chain in the handshake as well; a server leaves that to this verifier,
// because the handshake would not say whom it refuses and why.
class UriVerifier : public tls::ExternalCertificateVerifier {
 public:
  enum class Side { kClient, kServer };  // whose verifier this is

  UriVerifier(PeerTls peer, Side side) : peer_(std::move(peer)), side_(side) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/, grpc::Status* verdict) override {
    std::vector<std::string> shown;
    for (const grpc::string_ref& uri : request->uri_names())
      shown.emplace_back(uri.data(), uri.size());
    std::string refusal = Refusal(*request, shown);
    *verdict = grpc::Status::OK;
    if (refusal.empty()) return true;
    const std::string who = Joined(shown, ", ", "a peer without a URI in its certificate");
    // A client hears about it from its own call.
    if (side_ == Side::kServer) ReportRefusedPeer(who, refusal);
    *verdict = grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                            absl::StrCat("the peer is ", who, ": ", refusal));
    return true;
  }

  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}  // Verify() never waits

 private:
  // Empty: let in.
  std::string Refusal(const tls::TlsCustomVerificationCheckRequest& request,
                      const std::vector<std::string>& shown) const {
    if (side_ == Side::kServer) {
      const absl::Status chain = CheckClientChain(
          Text(request.peer_cert()), Text(request.peer_cert_full_chain()), peer_.ca_pem);
      if (!chain.ok()) return std::string(chain.message());
    }
    const auto allowed = [this](const std::string& uri) {
      return std::find(peer_.allowed_uris.begin(), peer_.allowed_uris.end(), uri) !=
             peer_.allowed_uris.end();
    };
    if (std::any_of(shown.begin(), shown.end(), allowed)) return "";
    return absl::StrCat("wanted is ", Joined(peer_.allowed_uris, " or ", "nobody"));
  }

  static std::string Text(const grpc::string_ref& text) { return {text.data(), text.size()}; }

  const PeerTls peer_;
  const Side side_;
};

template <typename Options>
void Fill(const PeerTls& peer, UriVerifier::Side side, Options& options) {
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<UriVerifier>(peer, side));
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
  Fill(peer, UriVerifier::Side::kClient, options);
  options.set_verify_server_certs(true);
  return tls::TlsCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakePeerServerCredentials(
    const PeerTls& peer) {
  HETERO_ASSIGN_OR_RETURN(std::shared_ptr<tls::CertificateProviderInterface> provider,
                          Provider(peer));
  tls::TlsServerCredentialsOptions options(provider);
  Fill(peer, UriVerifier::Side::kServer, options);
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  return tls::TlsServerCredentials(options);
}

}  // namespace hetero::base
