#include "base/tls.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "tests/support/temporary_folder.h"
#include "tests/unit/base/test_certificates.h"

namespace hetero::base {
namespace {

using ::testing::HasSubstr;

class TlsTest : public ::testing::Test {
 protected:
  TlsOptions Write(const std::string& name, const TestAuthority& trusted,
                   const TestAuthority::Leaf& leaf) {
    return {.ca_file = folder_.Write(name + "/ca.crt", trusted.certificate_pem()),
            .certificate_file = folder_.Write(name + "/tls.crt", leaf.certificate_pem),
            .key_file = folder_.Write(name + "/tls.key", leaf.key_pem)};
  }
  TlsOptions Good() { return Write("good", authority_, authority_.Issue("worker")); }

  testing::TemporaryFolder folder_;
  TestAuthority authority_;
};

constexpr char kReached[] = "the call has reached the service";

// Ends every call with a status that only this service gives.
class ReachedService : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    class Reactor : public grpc::ServerGenericBidiReactor {
     public:
      Reactor() { Finish(grpc::Status(grpc::StatusCode::ALREADY_EXISTS, kReached)); }
      void OnDone() override { delete this; }
    };
    return new Reactor;
  }
};

// On a free port of the loopback interface.
class TestServer {
 public:
  explicit TestServer(const TlsOptions& options)
      : TestServer(MakeServerCredentials(options).value()) {}
  explicit TestServer(const PeerTls& peer) : TestServer(MakePeerServerCredentials(peer).value()) {}
  explicit TestServer(const std::shared_ptr<grpc::ServerCredentials>& credentials) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~TestServer() { server_->Shutdown(); }

  // The status of a call.
  grpc::Status Call(const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    const auto channel = grpc::CreateChannel("127.0.0.1:" + std::to_string(port_), credentials);
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    const grpc::Slice empty;
    grpc::ByteBuffer request(&empty, 1), response;
    std::promise<grpc::Status> result;
    stub.UnaryCall(&context, "/test.Service/Call", {}, &request, &response,
                   [&](grpc::Status status) { result.set_value(std::move(status)); });
    return result.get_future().get();
  }
  grpc::Status Call(const TlsOptions& options) {
    return Call(MakeChannelCredentials(options).value());
  }
  grpc::Status Call(const PeerTls& peer) { return Call(MakePeerChannelCredentials(peer).value()); }

 private:
  ReachedService service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(TlsTest, PlainTextWorksWhenAskedForByName) {
  TestServer server({.plain_text = true});
  EXPECT_EQ(server.Call({.plain_text = true}).error_message(), kReached);
}

TEST_F(TlsTest, MutualTlsAcceptsItsOwnAuthority) {
  TestServer server(Write("server", authority_, authority_.Issue("head")));
  EXPECT_EQ(server.Call(Good()).error_message(), kReached);
}

TEST_F(TlsTest, ServerRefusesClientsItDoesNotKnow) {
  TestServer server(Write("server", authority_, authority_.Issue("head")));
  grpc::SslCredentialsOptions no_certificate;
  no_certificate.pem_root_certs = authority_.certificate_pem();
  EXPECT_EQ(server.Call(grpc::SslCredentials(no_certificate)).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  const TestAuthority stranger;
  EXPECT_EQ(server.Call(Write("stranger", authority_, stranger.Issue("worker"))).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(server.Call({.plain_text = true}).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, ClientRefusesAServerOfAnotherAuthority) {
  const TestAuthority stranger;
  TestServer server(Write("server", authority_, stranger.Issue("head")));
  EXPECT_EQ(server.Call(Good()).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, NothingGivenIsNotPlainText) {
  const auto credentials = MakeServerCredentials({});
  EXPECT_TRUE(absl::IsInvalidArgument(credentials.status()));
  EXPECT_THAT(credentials.status().message(), HasSubstr("certificate authority"));
}

TEST_F(TlsTest, MissingFileIsNamed) {
  TlsOptions options = Good();
  options.key_file = folder_ / "gone.key";
  const auto credentials = MakeChannelCredentials(options);
  EXPECT_TRUE(absl::IsNotFound(credentials.status()));
  EXPECT_THAT(credentials.status().message(), HasSubstr("private key"));
  EXPECT_THAT(credentials.status().message(), HasSubstr(options.key_file));
}

TEST_F(TlsTest, DamagedFileIsNamed) {
  TlsOptions options = Good();
  options.certificate_file = folder_.Write("bad.crt", "-----BEGIN CERTIFICATE-----\nMII");
  const auto credentials = MakeServerCredentials(options);
  EXPECT_TRUE(absl::IsInvalidArgument(credentials.status()));
  EXPECT_THAT(credentials.status().message(), HasSubstr(options.certificate_file));
}

TEST_F(TlsTest, KeyOfAnotherCertificateIsNamed) {
  TlsOptions options = Good();
  options.key_file = folder_.Write("other.key", authority_.Issue("other").key_pem);
  const auto credentials = MakeChannelCredentials(options);
  EXPECT_TRUE(absl::IsInvalidArgument(credentials.status()));
  EXPECT_THAT(credentials.status().message(), HasSubstr("does not belong to certificate"));
}

// The peers of these tests: the certificate for `own`, and who is let in.
PeerTls Peer(const TestAuthority& authority, const std::string& trusted, const std::string& own,
             std::vector<std::string> allowed) {
  const TestAuthority::Leaf leaf = authority.IssueForUri(own);
  return {trusted, leaf.certificate_pem, leaf.key_pem, std::move(allowed)};
}

TEST_F(TlsTest, PeersAreKnownByTheirUriWhateverTheirAddress) {
  const std::string ca = authority_.certificate_pem();
  TestServer server(Peer(authority_, ca, "hetero://job/Head", {"hetero://job/A", "hetero://b"}));
  const auto call = [&](const std::string& own, std::vector<std::string> wanted) {
    return server.Call(Peer(authority_, ca, own, std::move(wanted)));
  };
  EXPECT_EQ(call("hetero://job/A", {"hetero://job/Head"}).error_message(), kReached);
  EXPECT_EQ(call("hetero://b", {"x://y", "hetero://job/Head"}).error_message(), kReached);
  constexpr auto kUnavailable = grpc::StatusCode::UNAVAILABLE;
  EXPECT_EQ(call("hetero://job/AB", {"hetero://job/Head"}).error_code(), kUnavailable);
  EXPECT_EQ(call("hetero://job/A", {"hetero://job/Hea"}).error_code(), kUnavailable);
  EXPECT_EQ(call("hetero://job/A", {}).error_code(), kUnavailable);
}

TEST_F(TlsTest, APeerOfAnotherAuthorityIsRefusedWhateverItsUri) {
  const TestAuthority stranger;
  const std::string ca = authority_.certificate_pem();
  TestServer server(Peer(authority_, ca, "hetero://head", {"hetero://a"}));
  EXPECT_EQ(server.Call(Peer(stranger, ca, "hetero://a", {"hetero://head"})).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  grpc::SslCredentialsOptions no_certificate;
  no_certificate.pem_root_certs = ca;
  EXPECT_EQ(server.Call(grpc::SslCredentials(no_certificate)).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, AServerMayTrustSeveralAuthorities) {
  const TestAuthority second;
  const std::string ca = authority_.certificate_pem();
  TestServer server(
      Peer(authority_, ca + second.certificate_pem(), "hetero://head", {"hetero://a"}));
  EXPECT_EQ(server.Call(Peer(second, ca, "hetero://a", {"hetero://head"})).error_message(),
            kReached);
}

TEST_F(TlsTest, TextsThatAreNotPemAreNamed) {
  PeerTls peer = Peer(authority_, authority_.certificate_pem(), "hetero://a", {});
  peer.ca_pem = "";
  EXPECT_THAT(MakePeerChannelCredentials(peer).status().message(),
              HasSubstr("certificate authority of the peers"));
  peer.ca_pem = authority_.certificate_pem();
  peer.key_pem = authority_.Issue("other").key_pem;
  EXPECT_THAT(MakePeerServerCredentials(peer).status().message(),
              HasSubstr("private key of this process does not belong to certificate"));
}

}  // namespace
}  // namespace hetero::base
