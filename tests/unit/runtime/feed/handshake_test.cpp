// Trainer and CPU worker of different builds: neither works with the other, and each says why.
#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <future>
#include <map>
#include <memory>

#include "feed_fixture.h"
#include "runtime/feed/trainer_stream.h"
#include "runtime/feed/wire/messages.h"
#include "runtime/handshake/build.h"

namespace hetero::feed {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kLimit(60);

// A stream whose caller says what it likes in its metadata, and then maybe a word; ends with the
// first answer.
class Caller : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Caller(const std::string& address, const std::map<std::string, std::string>& metadata,
         const std::string& word = "")
      : channel_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())) {
    for (const auto& [key, value] : metadata) context_.AddMetadata(key, value);
    context_.set_deadline(std::chrono::system_clock::now() + kLimit);
    grpc::GenericStub stub(channel_);
    stub.PrepareBidiStreamingCall(&context_, kStreamMethod, grpc::StubOptions(), this);
    StartRead(&message_);
    const grpc::Slice slice(word);
    word_ = grpc::ByteBuffer(&slice, 1);
    if (!word.empty()) StartWrite(&word_);
    StartCall();
  }
  void OnReadInitialMetadataDone(bool ok) override {
    if (ok) met_.set_value();
  }
  void OnDone(const grpc::Status& status) override { done_.set_value(status); }

  grpc::Status Wait() { return done_.get_future().get(); }
  // Until the worker has answered; then the stream is cut.
  grpc::Status WaitForAnswerAndCut() {
    met_.get_future().wait_for(kLimit);
    context_.TryCancel();
    return Wait();
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  grpc::ByteBuffer message_, word_;
  std::promise<void> met_;
  std::promise<grpc::Status> done_;
};

class HandshakeTest : public FeedFixture {};

// It sends no metadata of its own.
TEST_F(HandshakeTest, ATrainerOfRelease010IsRefusedByTheWorker) {
  const auto worker = StartWorker("unix:" + folder_ + "/cpu-0.sock");
  const grpc::Status status = Caller(worker->address(), {}).Wait();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(),
              HasSubstr("the trainer is of a build that does not tell its "
                        "version (0.1.0 or older), the CPU worker of build"));
  EXPECT_THAT(status.error_message(), HasSubstr("an image of the same build"));
}

TEST_F(HandshakeTest, ATrainerOfAnotherProtocolIsRefusedByTheWorker) {
  const auto worker = StartWorker("unix:" + folder_ + "/cpu-0.sock");
  handshake::Build other = handshake::ThisBuild();
  other.protocol = "1-00000000";
  const grpc::Status refused =
      Caller(worker->address(), {{handshake::kMetadataKey, handshake::ToMetadata(other)}}).Wait();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("protocol 1-00000000"));

  Caller same(worker->address(),
              {{handshake::kMetadataKey, handshake::ToMetadata(handshake::ThisBuild())}});
  EXPECT_EQ(same.WaitForAnswerAndCut().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(HandshakeTest, ATrainerThatTalksNonsenseIsNamed) {
  const auto worker = StartWorker("127.0.0.1:0");
  ::testing::internal::CaptureStderr();
  const grpc::Status status =
      Caller(worker->address(),
             {{handshake::kMetadataKey, handshake::ToMetadata(handshake::ThisBuild())}},
             "\xFF no TicketRequest")
          .Wait();
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_THAT(said, HasSubstr("a trainer's stream is closed"));
  EXPECT_THAT(said, HasSubstr("peer=ipv4:127.0.0.1:"));
}

// It answers every stream, and tells no build.
class WorkerOfRelease010 : public grpc::CallbackGenericService {
 public:
  explicit WorkerOfRelease010(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
  }
  ~WorkerOfRelease010() override { server_->Shutdown(std::chrono::system_clock::now()); }

 private:
  class Stream : public grpc::ServerGenericBidiReactor {
   public:
    Stream() {
      StartSendInitialMetadata();
      StartRead(&message_);
    }
    void OnReadDone(bool ok) override {
      if (ok) return StartRead(&message_);
      Finish(grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    grpc::ByteBuffer message_;
  };
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Stream;
  }

  std::unique_ptr<grpc::Server> server_;
};

TEST_F(HandshakeTest, AWorkerOfRelease010IsGivenNoTicket) {
  const std::string address = "unix:" + folder_ + "/cpu-0.sock";
  const WorkerOfRelease010 worker(address);
  const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  std::promise<absl::Status> down;
  bool up = false;
  const auto stream = TrainerStream::Dial(
      channel, {.transports = EveryTransport(), .address = address, .byte_budget = 1 << 20},
      {.on_up = [&up] { up = true; },
       .on_frame = [](Frame) {},
       .on_down = [&down](const TrainerStream::Ending& end) { down.set_value(end.status); }});
  const absl::Status status = down.get_future().get();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the CPU worker at " + address +
                        " is of a build that does not tell its version (0.1.0 or older), this "
                        "trainer of build "));
  EXPECT_FALSE(up);
}

}  // namespace
}  // namespace hetero::feed
