#include "runtime/head/server.h"

#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "hetero/v1/status.grpc.pb.h"
#include "runtime/head/channel.h"
#include "runtime/head/rendezvous_client.h"
#include "tests/unit/runtime/head/server_fixture.h"

namespace hetero::head {
namespace {

using ::testing::HasSubstr;

constexpr base::Duration kLong = std::chrono::seconds(5);

std::string Message(const absl::Status& status) { return std::string(status.message()); }

std::unique_ptr<RendezvousClient> Connect(const Server& server, int64_t generation = 1) {
  return *RendezvousClient::Connect(server.address(), PlainText(), generation, base::Clock::Real());
}

TEST_F(ServerTest, TakenPortIsAnErrorThatNamesIt) {
  const auto first = Server::Start(MakeOptions("127.0.0.1:0"), base::Clock::Real());
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = Server::Start(MakeOptions((*first)->address()), base::Clock::Real());
  EXPECT_TRUE(absl::IsUnavailable(second.status())) << second.status();
  EXPECT_THAT(Message(second.status()), HasSubstr((*first)->address()));
  EXPECT_THAT(Message(second.status()), HasSubstr("taken"));
}

TEST_F(ServerTest, SocketOfALivingHeadIsNotTakenOver) {
  const auto first = StartServer();
  const auto second = Server::Start(MakeOptions(socket()), base::Clock::Real());
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
}

TEST_F(ServerTest, SocketPathThatIsTooLongIsAnErrorWithTheLimit) {
  const auto server = Server::Start(MakeOptions("unix:" + folder + "/" + std::string(108, 'x')),
                                    base::Clock::Real());
  EXPECT_TRUE(absl::IsInvalidArgument(server.status()));
  EXPECT_THAT(Message(server.status()), HasSubstr("at most 107"));
}

TEST_F(ServerTest, SocketInAMissingFolderIsAnError) {
  const auto server =
      Server::Start(MakeOptions("unix:" + folder + "/no/head.sock"), base::Clock::Real());
  EXPECT_THAT(Message(server.status()), HasSubstr("check that the folder exists"));
}

TEST_F(ServerTest, StatusHasAnAddressOfItsOwnWhenAsked) {
  Server::Options options = MakeOptions(socket());
  options.status_address = "127.0.0.1:0";
  const auto server = Server::Start(options, base::Clock::Real());
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ((*server)->address(), socket());
  EXPECT_THAT((*server)->status_address(), HasSubstr("127.0.0.1:"));
  EXPECT_NE((*server)->status_address(), "127.0.0.1:0");
}

// Otherwise nobody could tell a head that hangs from one with nothing to say.
TEST_F(ServerTest, AWatcherHearsFromAHeadWithNothingToSay) {
  const auto server = StartServer();
  const auto channel = DialHead(server->address(), PlainText());
  ASSERT_TRUE(channel.ok()) << channel.status();
  const auto stub = v1::Status::NewStub(*channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  const auto stream = stub->Watch(&context, v1::WatchRequest());
  int repeated = 0;
  for (v1::JobStatus status; repeated < 2 && stream->Read(&status);) {
    EXPECT_EQ(status.state(), v1::JobStatus::WAITING);
    EXPECT_EQ(status.roles_size(), 2) << "whole, for readers that know no better";
    repeated += status.unchanged();
  }
  EXPECT_EQ(repeated, 2);
  context.TryCancel();
}

TEST_F(ServerTest, RendezvousBetweenTwoClients) {
  const auto server = StartServer();
  const auto a = Connect(*server);
  const auto b = Connect(*server);
  absl::StatusOr<std::string> got;
  std::thread waiter([&] { got = b->Get("address", kLong); });
  EXPECT_TRUE(a->Set("address", "10.0.0.7").ok());
  waiter.join();
  EXPECT_EQ(*got, "10.0.0.7");
  EXPECT_TRUE(b->Wait({"address"}, kLong).ok());
  EXPECT_EQ(*a->Add("joined", 1), 1);
  EXPECT_EQ(*b->Add("joined", 1), 2);
  EXPECT_EQ(*a->CompareSet("leader", "", "a"), "a");
  EXPECT_EQ(*b->CompareSet("leader", "", "b"), "a");
  EXPECT_TRUE(*b->Check({"joined", "leader"}));
  EXPECT_EQ(*a->CountKeys(), 3);
  EXPECT_FALSE(*Connect(*server, 2)->Check({"joined"}));  // another generation
  EXPECT_TRUE(*b->Delete("leader"));
  EXPECT_FALSE(*a->Delete("leader"));
}

TEST_F(ServerTest, WaitingForAKeyEndsWithTheDeadlineAndNamesTheKey) {
  const auto server = StartServer();
  const absl::Status status =
      Connect(*server)->Get("never", std::chrono::milliseconds(50)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("'never'"));
}

TEST_F(ServerTest, WaitingCallsEndWhenTheServerDoes) {
  auto server = StartServer();
  const auto client = Connect(*server);
  ASSERT_TRUE(client->Set("ready", "").ok());
  absl::Status waited;
  std::thread waiter([&] { waited = client->Wait({"never"}, std::chrono::seconds(1)); });
  server.reset();
  waiter.join();
  EXPECT_FALSE(waited.ok());
}

TEST_F(ServerTest, WatchGetsTheStatusNowAndTheFinalOne) {
  const auto server = StartServer();
  const auto channel = DialHead(server->status_address(), PlainText());
  const auto stub = v1::Status::NewStub(*channel);
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(base::Clock::Real().WallNow() + std::chrono::seconds(5));
  const auto reader = stub->Watch(&context, {});
  v1::JobStatus status;
  ASSERT_TRUE(reader->Read(&status));
  EXPECT_EQ(status.state(), v1::JobStatus::WAITING);

  grpc::ClientContext stop_context;
  v1::StopRequest request;
  request.set_reason("test");
  v1::StopReply reply;
  EXPECT_TRUE(stub->Stop(&stop_context, request, &reply).ok());
  while (reader->Read(&status)) continue;
  EXPECT_EQ(status.state(), v1::JobStatus::STOPPED);
  EXPECT_TRUE(reader->Finish().ok());
}

// The only rank's exit report comes before it has joined, or from one that lies.
TEST_F(ServerTest, ExitReportsAloneAreNoSuccess) {
  const auto server = StartServer();
  const auto stub = v1::Status::NewStub(*DialHead(server->status_address(), PlainText()));
  v1::ExitReport report;
  report.set_role("gpu");
  const auto tell = [&] {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(base::Clock::Real().WallNow() + std::chrono::seconds(60));
    v1::ExitReply reply;
    EXPECT_TRUE(stub->ReportExit(&context, report, &reply).ok());
  };
  tell();
  EXPECT_EQ(server->status().state(), v1::JobStatus::WAITING);
  report.add_last_words()->set_ok(true);
  report.mutable_last_words(0)->mutable_last()->mutable_progress()->set_step(12);
  tell();
  const v1::JobStatus status = server->Wait();
  EXPECT_EQ(status.state(), v1::JobStatus::SUCCEEDED);
  EXPECT_EQ(status.result().steps(), 12);
}

TEST_F(ServerTest, ReportIsWrittenBeforeTheEndIsTold) {
  Server::Options options = MakeOptions(socket());
  options.output_folder = folder + "/out";
  const auto server = Server::Start(options, base::Clock::Real());
  ASSERT_TRUE(server.ok());
  (*server)->Stop("test");
  const v1::JobStatus status = (*server)->Wait();
  EXPECT_EQ(status.report_uri(), "file://" + folder + "/out/report.json");
  EXPECT_EQ(status.result().report_uri(), status.report_uri());
  EXPECT_TRUE(std::filesystem::exists(folder + "/out/report.json"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/out/report.html"));
}

TEST_F(ServerTest, ReportThatCannotBeWrittenLeavesTheVerdictAlone) {
  std::ofstream(folder + "/file") << "in the way";
  Server::Options options = MakeOptions(socket());
  options.output_folder = folder + "/file";
  const auto server = Server::Start(options, base::Clock::Real());
  ASSERT_TRUE(server.ok());
  (*server)->Stop("test");
  const v1::JobStatus status = (*server)->Wait();
  EXPECT_EQ(status.state(), v1::JobStatus::STOPPED);
  EXPECT_EQ(status.report_uri(), "");
  EXPECT_THAT(status.first_failure().message(), HasSubstr("could not be written"));
}

}  // namespace
}  // namespace hetero::head
