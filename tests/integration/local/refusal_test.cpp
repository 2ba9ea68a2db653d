// Who may call which port of a job. A head and a CPU worker with a job's certificates, in this
// process, and everybody who might knock.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "api/peer_uri.h"
#include "api/role_type.h"
#include "base/grpc_log.h"
#include "runtime/feed/worker_server.h"
#include "runtime/head/server.h"
#include "runtime/process/identity.h"
#include "tests/integration/support/jobs.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/base/test_certificates.h"

namespace hetero {
namespace {

namespace tls = grpc::experimental;
using base::TestAuthority;
using ::testing::HasSubstr;

constexpr char kUid[] = "0b8c2c1e-7f0f-4f3e-9d8f-3f1c2f3a4b5c";
constexpr char kOtherUid[] = "11111111-2222-3333-4444-555555555555";

// The status of a call of a method that no service has: UNIMPLEMENTED from those who are let in.
grpc::Status Knock(const std::string& address,
                   const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  grpc::GenericStub stub(grpc::CreateCustomChannel(address, credentials, arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const grpc::Slice empty;
  grpc::ByteBuffer request(&empty, 1), response;
  std::promise<grpc::Status> result;
  stub.UnaryCall(&context, "/nobody.Here/Knocks", {}, &request, &response,
                 [&](grpc::Status status) { result.set_value(std::move(status)); });
  return result.get_future().get();
}

// A TCP connection on which nothing was said yet; -1: none.
int Connect(const std::string& address) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) return fd;
  close(fd);
  return -1;
}

class RefusalTest : public ::testing::Test {
 protected:
  RefusalTest() {
    base::SendGrpcLogToOurs(base::GrpcLines::kOfServer);
    head::Server::Options head;
    head.job = testing::SmallJob();
    head.listen_address = "127.0.0.1:0";
    head.status_address = "127.0.0.1:0";
    head.created = base::Clock::Real().WallNow();
    const base::TlsOptions own = Files("head", job_.IssueForUri(api::RoleUri(kUid, "Head")));
    head.tls = process::TlsWith(own, kUid, {api::kCpuWorkerType, api::kGpuWorkerType});
    head.status_tls = own;
    head.status_tls->ca_file = Write("operator-ca.crt", operator_.certificate_pem());
    head.status_tls->peer_uris = {api::kOperatorUri};
    head_ = head::Server::Start(std::move(head), base::Clock::Real()).value();
    worker_ = feed::WorkerServer::Start(
                  {.listen_address = "127.0.0.1:0",
                   .tls = process::TlsWith(
                       Files("cpu", job_.IssueForUri(api::RoleUri(kUid, "CPUWorker"))), kUid,
                       {api::kGpuWorkerType}),
                   .name = "cpu-0"},
                  base::Clock::Real())
                  .value();
  }

  std::string Write(const std::string& name, const std::string& text) {
    testing::WriteFile(folder_ / name, text);
    return folder_ / name;
  }
  base::TlsOptions Files(const std::string& name, const TestAuthority::Leaf& leaf) {
    return {.ca_file = Write("ca.crt", job_.certificate_pem()),
            .certificate_file = Write(name + ".crt", leaf.certificate_pem),
            .key_file = Write(name + ".key", leaf.key_pem)};
  }

  // A client that takes any server of the job, so that only the server can refuse.
  std::shared_ptr<grpc::ChannelCredentials> Client(const TestAuthority::Leaf& leaf) {
    return base::MakePeerChannelCredentials(
               {.ca_pem = job_.certificate_pem(),
                .certificate_pem = leaf.certificate_pem,
                .key_pem = leaf.key_pem,
                .allowed_uris = {api::RoleUri(kUid, "Head"), api::RoleUri(kUid, "CPUWorker")}})
        .value();
  }
  std::shared_ptr<grpc::ChannelCredentials> WithoutCertificate() {
    tls::TlsChannelCredentialsOptions options;
    options.set_certificate_provider(std::make_shared<tls::StaticDataCertificateProvider>(
        job_.certificate_pem(), std::vector<tls::IdentityKeyCertPair>{}));
    options.watch_root_certs();
    options.set_certificate_verifier(std::make_shared<tls::NoOpCertificateVerifier>());
    options.set_check_call_host(false);
    return tls::TlsCredentials(options);
  }
  std::map<std::string, std::string> Ports() const {
    return {{"join", head_->address()},
            {"status", head_->status_address()},
            {"feed", worker_->address()}};
  }

  TestAuthority job_, other_job_, operator_;
  testing::TemporaryFolder folder_;
  std::unique_ptr<head::Server> head_;
  std::unique_ptr<feed::WorkerServer> worker_;
};

TEST_F(RefusalTest, EachPortLetsInItsOwnCallersAndSaysWhomItRefusesAndWhy) {
  struct Peer {
    std::string name;
    std::shared_ptr<grpc::ChannelCredentials> credentials;
    std::set<std::string> let_in;
  };
  const auto uri = [](const char* role) { return api::RoleUri(kUid, role); };
  const std::vector<Peer> peers = {
      {"head", Client(job_.IssueForUri(uri("Head"))), {}},
      {"CPU worker", Client(job_.IssueForUri(uri("CPUWorker"))), {"join"}},
      {"GPU worker", Client(job_.IssueForUri(uri("GPUWorker"))), {"join", "feed"}},
      {"operator", Client(operator_.IssueForUri(api::kOperatorUri)), {"status"}},
      {"operator's name by the job's authority", Client(job_.IssueForUri(api::kOperatorUri)), {}},
      {"GPU worker's name by the operator's authority",
       Client(operator_.IssueForUri(uri("GPUWorker"))),
       {}},
      {"expired", Client(job_.IssueExpiredForUri(uri("GPUWorker"))), {}},
      {"expired operator", Client(operator_.IssueExpiredForUri(api::kOperatorUri)), {}},
      {"other job", Client(other_job_.IssueForUri(api::RoleUri(kOtherUid, "GPUWorker"))), {}},
      {"other job, this job's name", Client(other_job_.IssueForUri(uri("GPUWorker"))), {}},
      {"other job's name by this job's authority",
       Client(job_.IssueForUri(api::RoleUri(kOtherUid, "GPUWorker"))),
       {}},
      {"host certificate", Client(job_.Issue("gpu-0")), {}},
      {"no certificate", WithoutCertificate(), {}},
      {"plain text", grpc::InsecureChannelCredentials(), {}},
  };
  ::testing::internal::CaptureStderr();  // one line per kind of refusal in a process's life
  for (const Peer& peer : peers) {
    for (const auto& [port, address] : Ports()) {
      const grpc::Status status = Knock(address, peer.credentials);
      const auto wanted = peer.let_in.contains(port) ? grpc::StatusCode::UNIMPLEMENTED
                                                     : grpc::StatusCode::UNAVAILABLE;
      EXPECT_EQ(status.error_code(), wanted)
          << peer.name << " at " << port << ": " << status.error_message();
    }
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  const auto line = [](const std::string& who, const std::string& why) {
    return HasSubstr(absl::StrCat("peer refused peer=", who, " reason=\"", why));
  };
  EXPECT_THAT(log, line(uri("Head"), absl::StrCat("wanted is ", uri("CPUWorker"), " or ")));
  EXPECT_THAT(log, line(uri("CPUWorker"), absl::StrCat("wanted is ", uri("GPUWorker"))));
  EXPECT_THAT(log, line(uri("GPUWorker"), "its certificate has expired"));
  EXPECT_THAT(log, line(uri("GPUWorker"), "its certificate is signed by another authority"));
  EXPECT_THAT(log, line(api::RoleUri(kOtherUid, "GPUWorker"),
                        "its certificate is signed by another authority"));
  EXPECT_THAT(log, line(api::kOperatorUri, "its certificate has expired"));
  EXPECT_THAT(log, HasSubstr("reason=\"peer did not return a certificate\""));
  EXPECT_THAT(log, HasSubstr("reason=\"it does not speak TLS: wrong version number\""));
}

TEST_F(RefusalTest, OlderTlsIsRefused) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  SSL_CTX_free);
  SSL_CTX_set_security_level(context.get(), 0);
  for (const int version : {TLS1_VERSION, TLS1_1_VERSION, TLS1_2_VERSION}) {
    ASSERT_EQ(SSL_CTX_set_min_proto_version(context.get(), version), 1);
    ASSERT_EQ(SSL_CTX_set_max_proto_version(context.get(), version), 1);
    const TestAuthority::Leaf leaf = job_.IssueForUri(api::RoleUri(kUid, "GPUWorker"));
    Write("old.crt", leaf.certificate_pem);
    Write("old.key", leaf.key_pem);
    SSL_CTX_use_certificate_file(context.get(), (folder_ / "old.crt").c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(context.get(), (folder_ / "old.key").c_str(), SSL_FILETYPE_PEM);
    const unsigned char h2[] = {2, 'h', '2'};
    SSL_CTX_set_alpn_protos(context.get(), h2, sizeof h2);
    const int fd = Connect(worker_->address());
    ASSERT_GE(fd, 0);
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), SSL_free);
    SSL_set_fd(ssl.get(), fd);
    EXPECT_EQ(SSL_connect(ssl.get()) == 1, version == TLS1_2_VERSION) << std::hex << version;
    close(fd);
  }
}

TEST_F(RefusalTest, NoiseAndHalfOpenConnectionsDisturbNobody) {
  constexpr int kConnections = 1000;  // to each port
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  // Both ends of a connection are in this process.
  if (limit.rlim_cur < 6 * kConnections + 200) {
    GTEST_SKIP() << "this machine allows " << limit.rlim_cur << " open files";
  }
  std::vector<int> connections;
  const std::string noise = "\x16\x03\x01GET / HTTP/1.1\r\n\r\n\xff\xfe\x00\x80";
  for (const auto& [port, address] : Ports()) {
    for (int i = 0; i < kConnections; ++i) {
      const int fd = Connect(address);
      ASSERT_GE(fd, 0) << port << ", connection " << i << ": " << std::strerror(errno);
      // A third says nothing, a third a little, a third something that is no TLS.
      if (i % 3 == 1) {
        EXPECT_EQ(send(fd, noise.data(), 3, MSG_NOSIGNAL), 3);
      }
      if (i % 3 == 2) send(fd, noise.data() + 3, noise.size() - 3, MSG_NOSIGNAL);
      connections.push_back(fd);
    }
  }
  const auto worker = Client(job_.IssueForUri(api::RoleUri(kUid, "GPUWorker")));
  const auto watcher = Client(operator_.IssueForUri(api::kOperatorUri));
  EXPECT_EQ(Knock(head_->address(), worker).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(Knock(worker_->address(), worker).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(Knock(head_->status_address(), watcher).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  for (const int fd : connections) close(fd);
}

}  // namespace
}  // namespace hetero
