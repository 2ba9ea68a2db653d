#include <gmock/gmock.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "base/version.h"
#include "hetero/v1/membership.grpc.pb.h"
#include "tests/unit/runtime/head/server_fixture.h"

namespace hetero::head {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

constexpr base::Duration kLong = std::chrono::seconds(5);

v1::Finished Ok() {
  v1::Finished finished;
  finished.set_ok(true);
  return finished;
}

using JoinTest = ServerTest;

TEST_F(JoinTest, JobFromJoiningToTheAcknowledgedEnd) {
  const auto server = StartServer();
  Joined cpu = Join(server->address(), MakeHello("cpu", 0));
  EXPECT_EQ(cpu.inbox->Next(), "welcome");
  EXPECT_EQ(server->status().state(), v1::JobStatus::WAITING);
  Joined gpu = Join(server->address(), MakeHello("gpu", 0));
  EXPECT_EQ(gpu.inbox->Next(), "welcome");
  EXPECT_EQ(gpu.inbox->Next(), "generation 1 ranks 1");
  EXPECT_EQ(cpu.inbox->Next(), "generation 1 ranks 0");
  EXPECT_EQ(server->status().state(), v1::JobStatus::RUNNING);

  EXPECT_TRUE(gpu.member->Finish(Ok(), kLong).ok());
  EXPECT_EQ(cpu.inbox->Next(), "command STOP");
  EXPECT_TRUE(cpu.member->Finish(Ok(), kLong).ok());
  EXPECT_EQ(server->Wait().state(), v1::JobStatus::SUCCEEDED);
}

// The head takes 4 MiB of a message. What it refused was kept, and sent again on each stream.
TEST_F(JoinTest, AMemberWithAnEndlessTextIsHeardToItsEnd) {
  const auto server = StartServer();
  Joined cpu = Join(server->address(), MakeHello("cpu", 0));
  Joined gpu;
  std::atomic<int> beats = 0;
  gpu.member = Member::Start(
      {.head_address = server->address(),
       .tls = PlainText(),
       .hello = MakeHello("gpu", 0),
       .heartbeat = std::chrono::milliseconds(20)},
      gpu.inbox->MakeCallbacks(),
      [&beats] {
        v1::Heartbeat heartbeat;
        if (beats++ > 0) return heartbeat;
        heartbeat.add_bad_samples()->set_reason(std::string(5'000'000, 'x'));
        heartbeat.add_faults()->set_what(std::string(5'000'000, 'x'));
        return heartbeat;
      },
      base::Clock::Real());
  gpu.member->SetReady({});
  EXPECT_EQ(gpu.inbox->Next(), "welcome");
  EXPECT_EQ(gpu.inbox->Next(), "generation 1 ranks 1");
  const absl::Status heard = gpu.member->Finish(gpu.member->Complete(Ok()), kLong);
  EXPECT_TRUE(heard.ok()) << heard;
  const insight::Report report = server->ReportSoFar();
  EXPECT_EQ(report.bad_samples, 1);
  ASSERT_EQ(report.faults.size(), 1u);
}

TEST_F(JoinTest, StopReachesEveryMember) {
  const auto server = StartServer();
  Joined cpu = Join(server->address(), MakeHello("cpu", 0));
  EXPECT_EQ(cpu.inbox->Next(), "welcome");
  server->Stop("test");
  EXPECT_EQ(cpu.inbox->Next(), "command STOP");
  EXPECT_EQ(server->Wait().state(), v1::JobStatus::STOPPED);  // after the grace
}

TEST_F(JoinTest, OlderIncarnationIsRefused) {
  const auto server = StartServer();
  Joined newer = Join(server->address(), MakeHello("cpu", 0, 0, 2));
  EXPECT_EQ(newer.inbox->Next(), "welcome");
  Joined older = Join(server->address(), MakeHello("cpu", 0, 0, 1));
  EXPECT_EQ(older.inbox->Next(), "superseded");
  EXPECT_TRUE(absl::IsFailedPrecondition(older.member->Finish(Ok(), kLong)));
}

TEST_F(JoinTest, AnotherVersionHearsWhyItIsRefusedAndTheJobGoesOn) {
  const auto server = StartServer();
  v1::Hello hello = MakeHello("gpu", 0);
  hello.set_version("9.8.7");
  Joined other = Join(server->address(), hello);
  const std::string heard = other.inbox->Next();
  EXPECT_THAT(heard, StartsWith("refused: gpu-0 is of build 9.8.7 (protocol "));
  EXPECT_THAT(heard, EndsWith(": give every role of the job an image of the same build"));
  EXPECT_EQ(server->status().state(), v1::JobStatus::WAITING);
  hello.set_version(base::kVersion);
  Joined same = Join(server->address(), hello);
  EXPECT_EQ(same.inbox->Next(), "welcome");
}

// A head of release 0.1.0: it looks at the version alone, which may be the same, lets everybody in
// and tells no build with its Welcome.
class HeadOfRelease010 : public v1::Membership::Service {
 public:
  explicit HeadOfRelease010(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  grpc::Status Join(grpc::ServerContext*,
                    grpc::ServerReaderWriter<v1::HeadMessage, v1::MemberMessage>* stream) override {
    v1::MemberMessage message;
    stream->Read(&message);
    v1::HeadMessage answer;
    answer.mutable_welcome()->set_job_json("{}");
    answer.mutable_welcome()->set_member_timeout_seconds(5);
    stream->Write(answer);
    while (stream->Read(&message)) ++heard_after_welcome;
    return grpc::Status::OK;
  }

  std::atomic<int> heard_after_welcome = 0;

 private:
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(JoinTest, AHeadOfRelease010HasNoMembersOfThisBuild) {
  HeadOfRelease010 head(socket());
  Joined gpu = Join(socket(), MakeHello("gpu", 0));
  const std::string heard = gpu.inbox->Next();
  EXPECT_THAT(heard, StartsWith("refused: the head is of a build that does not tell its version "
                                "(0.1.0 or older), this process of build "));
  EXPECT_THAT(heard, EndsWith(": give every role of the job an image of the same build"));
  EXPECT_TRUE(absl::IsFailedPrecondition(gpu.member->Finish(Ok(), kLong)));
  EXPECT_EQ(head.heard_after_welcome, 0);
}

TEST_F(JoinTest, MemberDialsAgainWhenTheHeadIsReplaced) {
  auto server = StartServer();
  Joined cpu = Join(server->address(), MakeHello("cpu", 0));
  EXPECT_EQ(cpu.inbox->Next(), "welcome");
  server.reset();
  EXPECT_EQ(cpu.inbox->Next(), "head lost");
  server = StartServer();
  Joined gpu = Join(server->address(), MakeHello("gpu", 0));
  EXPECT_EQ(cpu.inbox->Next(), "generation 1 ranks 0");
}

TEST_F(JoinTest, LastWordIsRetriedUntilAHeadHearsIt) {
  auto server = StartServer();
  Joined cpu = Join(server->address(), MakeHello("cpu", 0));
  EXPECT_EQ(cpu.inbox->Next(), "welcome");
  server.reset();
  const absl::Status late = cpu.member->Finish(Ok(), std::chrono::milliseconds(50));
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  server = StartServer();
  EXPECT_TRUE(cpu.member->Finish(Ok(), kLong).ok());
}

// A heartbeat that was taken before the end must not reach the head after it.
TEST_F(JoinTest, LastWordComesAfterEveryHeartbeat) {
  const auto server = StartServer();
  Joined cpu = Join(server->address(), MakeHello("cpu", 0));
  EXPECT_EQ(cpu.inbox->Next(), "welcome");
  std::atomic<int64_t> step = 0;
  std::atomic<bool> taken_whole = false;
  std::promise<void> taken, ending;
  const auto source = [&] {
    v1::Heartbeat heartbeat;
    heartbeat.mutable_progress()->set_digest_low(static_cast<uint64_t>(step));
    if (step.exchange(2) == 1) {  // the thread that beats is slow, while the rank ends
      taken.set_value();
      ending.get_future().wait();
      base::Clock::Real().SleepFor(std::chrono::milliseconds(300));
      taken_whole = true;
    }
    return heartbeat;
  };
  Inbox inbox;
  const auto gpu = Member::Start({.head_address = server->address(),
                                  .tls = PlainText(),
                                  .hello = MakeHello("gpu", 0),
                                  .heartbeat = std::chrono::milliseconds(20)},
                                 inbox.MakeCallbacks(), source, base::Clock::Real());
  gpu->SetReady({});
  EXPECT_EQ(inbox.Next(), "welcome");
  EXPECT_EQ(inbox.Next(), "generation 1 ranks 1");
  EXPECT_EQ(cpu.inbox->Next(), "generation 1 ranks 0");
  step = 1;
  taken.get_future().wait();
  v1::Finished finished = Ok();
  finished.mutable_last()->mutable_progress()->set_digest_low(3);
  ending.set_value();
  EXPECT_TRUE(gpu->Finish(finished, kLong).ok());
  EXPECT_TRUE(taken_whole);  // the last word waited for its turn
  EXPECT_EQ(cpu.inbox->Next(), "command STOP");
  EXPECT_TRUE(cpu.member->Finish(Ok(), kLong).ok());
  EXPECT_EQ(server->Wait().progress().digest_low(), 3u);
}

TEST_F(JoinTest, FailureEndsWithTheMembersMessage) {
  const auto server = StartServer();
  Joined cpu = Join(server->address(), MakeHello("cpu", 0));
  Joined gpu = Join(server->address(), MakeHello("gpu", 0));
  EXPECT_EQ(gpu.inbox->Next(), "welcome");
  EXPECT_EQ(gpu.inbox->Next(), "generation 1 ranks 1");
  server->Fail("gpu-0", "killed by signal 9");
  const v1::JobStatus status = server->Wait();
  EXPECT_EQ(status.state(), v1::JobStatus::FAILED);
  EXPECT_EQ(status.first_failure().member(), "gpu-0");
  EXPECT_EQ(status.first_failure().message(), "killed by signal 9");
}

}  // namespace
}  // namespace hetero::head
