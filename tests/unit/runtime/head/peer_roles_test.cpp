// Members with real certificates, of which some ask for more than theirs allow.
#include "runtime/head/peer_roles.h"

#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "api/peer_uri.h"
#include "api/role_type.h"
#include "hetero/v1/membership.grpc.pb.h"
#include "runtime/head/channel.h"
#include "runtime/head/rendezvous_client.h"
#include "tests/unit/base/test_certificates.h"
#include "tests/unit/runtime/head/server_fixture.h"

namespace hetero::head {
namespace {

using ::testing::HasSubstr;

constexpr char kUid[] = "0b8c2c1e-7f0f-4f3e-9d8f-3f1c2f3a4b5c";

class PeerRolesTest : public ServerTest {
 protected:
  PeerRolesTest() {
    Server::Options options = MakeOptions("127.0.0.1:0");
    options.incarnation = 5;
    options.tls = Files(api::kHeadType);
    options.tls.peer_uris = {api::RoleUri(kUid, api::kCpuWorkerType),
                             api::RoleUri(kUid, api::kGpuWorkerType)};
    server_ = Server::Start(std::move(options), base::Clock::Real()).value();
  }

  // What a process of that type is given, to call the head.
  base::TlsOptions Files(const std::string& type) {
    const base::TestAuthority::Leaf leaf = authority_.IssueForUri(api::RoleUri(kUid, type));
    return {.ca_file = Write("ca.crt", authority_.certificate_pem()),
            .certificate_file = Write(type + ".crt", leaf.certificate_pem),
            .key_file = Write(type + ".key", leaf.key_pem),
            .peer_uris = {api::RoleUri(kUid, api::kHeadType)}};
  }
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder + "/" + name) << text;
    return folder + "/" + name;
  }
  Joined JoinAs(const std::string& type, v1::Hello hello) {
    Joined joined;
    joined.member = Member::Start(
        {.head_address = server_->address(),
         .tls = Files(type),
         .hello = std::move(hello),
         .heartbeat = std::chrono::milliseconds(50)},
        joined.inbox->MakeCallbacks(), [] { return v1::Heartbeat(); }, base::Clock::Real());
    joined.member->SetReady({});
    return joined;
  }
  std::string Needs(const std::string& wanted, const std::string& wish, const std::string& shown) {
    return absl::StrCat("a certificate of type ", wanted, " is needed ", wish,
                        ", and this one is of ", api::RoleUri(kUid, shown));
  }

  base::TestAuthority authority_;
  std::unique_ptr<Server> server_;
};

// It joined as gpu-0 with the largest incarnation, and the real trainer was refused for good.
TEST_F(PeerRolesTest, ACpuWorkersCertificateDoesNotPlayTrainer) {
  Joined forger = JoinAs(api::kCpuWorkerType, MakeHello("gpu", 0, 0, INT64_MAX));
  EXPECT_EQ(forger.inbox->Next(),
            "refused: " + Needs(api::kGpuWorkerType, "to join as gpu-0", api::kCpuWorkerType));
  Joined trainer = JoinAs(api::kGpuWorkerType, MakeHello("gpu", 0));
  EXPECT_EQ(trainer.inbox->Next(), "welcome");
  Joined worker = JoinAs(api::kCpuWorkerType, MakeHello("cpu", 0));
  EXPECT_EQ(worker.inbox->Next(), "welcome");
  EXPECT_EQ(trainer.inbox->Next(), "generation 1 ranks 1");
}

// Ranks alone may tell a head that another has taken its place.
TEST_F(PeerRolesTest, ACpuWorkersCertificateEndsNoHead) {
  v1::Hello hello = MakeHello("gpu", 0);
  hello.set_head_incarnation(INT64_MAX);
  const auto channel = DialHead(server_->address(), Files(api::kCpuWorkerType));
  ASSERT_TRUE(channel.ok()) << channel.status();
  const auto stub = v1::Membership::NewStub(*channel);
  grpc::ClientContext context;
  context.set_deadline(base::Clock::Real().WallNow() + std::chrono::seconds(20));
  const auto stream = stub->Join(&context);
  v1::MemberMessage message;
  *message.mutable_hello() = hello;
  EXPECT_TRUE(stream->Write(message));
  v1::HeadMessage answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_THAT(answer.refused().reason(), HasSubstr("to join as gpu-0"));
  Joined trainer = JoinAs(api::kGpuWorkerType, MakeHello("gpu", 0));
  EXPECT_EQ(trainer.inbox->Next(), "welcome");
}

TEST_F(PeerRolesTest, ATrainersCertificateDoesNotPlayCpuWorker) {
  Joined forger = JoinAs(api::kGpuWorkerType, MakeHello("cpu", 0));
  EXPECT_EQ(forger.inbox->Next(),
            "refused: " + Needs(api::kCpuWorkerType, "to join as cpu-0", api::kGpuWorkerType));
}

TEST_F(PeerRolesTest, AForgedLastWordEndsNothing) {
  Joined trainer = JoinAs(api::kGpuWorkerType, MakeHello("gpu", 0));
  EXPECT_EQ(trainer.inbox->Next(), "welcome");
  Joined worker = JoinAs(api::kCpuWorkerType, MakeHello("cpu", 0));
  EXPECT_EQ(trainer.inbox->Next(), "generation 1 ranks 1");

  const auto channel = DialHead(server_->address(), Files(api::kCpuWorkerType));
  ASSERT_TRUE(channel.ok()) << channel.status();
  const auto stub = v1::Membership::NewStub(*channel);
  grpc::ClientContext context;
  context.set_deadline(base::Clock::Real().WallNow() + std::chrono::seconds(20));
  const auto stream = stub->Join(&context);
  v1::MemberMessage message;
  *message.mutable_hello() = MakeHello("gpu", 0, 0, 7);
  EXPECT_TRUE(stream->Write(message));
  message.mutable_finished()->set_ok(true);
  stream->Write(message);
  v1::HeadMessage answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_THAT(answer.refused().reason(), HasSubstr("to join as gpu-0"));
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(server_->status().state(), v1::JobStatus::RUNNING);
  EXPECT_TRUE(trainer.member
                  ->Finish(
                      [] {
                        v1::Finished word;
                        word.set_ok(true);
                        return word;
                      }(),
                      std::chrono::seconds(20))
                  .ok());
}

TEST_F(PeerRolesTest, TrainersMeetAmongThemselves) {
  const auto trainer = RendezvousClient::Connect(server_->address(), Files(api::kGpuWorkerType), 1,
                                                 base::Clock::Real());
  EXPECT_TRUE((*trainer)->Set("address", "10.0.0.7").ok());
  const auto worker = RendezvousClient::Connect(server_->address(), Files(api::kCpuWorkerType), 1,
                                                base::Clock::Real());
  const auto refused = [&](const absl::Status& status) {
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(Needs(api::kGpuWorkerType, "to use the keys by which trainers meet",
                                api::kCpuWorkerType)));
  };
  refused((*worker)->Set("address", "10.6.6.6"));
  refused((*worker)->Get("address", std::chrono::seconds(20)).status());
  refused((*worker)->Wait({"address"}, std::chrono::seconds(20)));
  refused((*worker)->Check({"address"}).status());
  refused((*worker)->Add("count", 1).status());
  refused((*worker)->CompareSet("address", "", "10.6.6.6").status());
  refused((*worker)->Delete("address").status());
  refused((*worker)->CountKeys().status());
  EXPECT_EQ(*(*trainer)->Get("address", std::chrono::seconds(20)), "10.0.0.7");
}

}  // namespace
}  // namespace hetero::head
