#include "base/tls.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "tests/unit/base/temporary_folder.h"
#include "tests/unit/base/test_certificates.h"

namespace hetero::base {
namespace {

using testing::HasSubstr;

class TlsTest : public testing::Test {
 protected:
  TlsOptions Write(const std::string& name, const TestAuthority& trusted,
                   const TestAuthority::Leaf& leaf) {
    return {.ca_file = folder_.Write(name + "/ca.crt", trusted.certificate_pem()),
            .certificate_file = folder_.Write(name + "/tls.crt", leaf.certificate_pem),
            .key_file = folder_.Write(name + "/tls.key", leaf.key_pem)};
  }
  TlsOptions Good() { return Write("good", authority_, authority_.Issue("worker")); }

  TemporaryFolder folder_;
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
  explicit TestServer(const TlsOptions& options) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", MakeServerCredentials(options).value(), &port_);
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
  options.key_file = folder_.path() / "gone.key";
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

}  // namespace
}  // namespace hetero::base
