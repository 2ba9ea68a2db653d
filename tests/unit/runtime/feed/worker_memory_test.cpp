// A CPU worker that more trainers ask than its memory holds the batches of.
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "counting_producer.h"
#include "feed_fixture.h"
#include "runtime/feed/wire/messages.h"
#include "runtime/handshake/build.h"

namespace hetero::feed {
namespace {

constexpr std::chrono::seconds kLimit(60);

// Asks for tickets, and takes no batch until it is told to.
class IdleTrainer : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  IdleTrainer(const std::string& address, TicketRequest request)
      : channel_(Channel(address)), request_(EncodeRequest(request)) {
    context_.AddMetadata(handshake::kMetadataKey, handshake::ToMetadata(handshake::ThisBuild()));
    context_.set_deadline(std::chrono::system_clock::now() + kLimit);
    grpc::GenericStub stub(channel_);
    stub.PrepareBidiStreamingCall(&context_, kStreamMethod, grpc::StubOptions(), this);
    AddHold();
    StartWrite(&request_);
    StartCall();
  }
  ~IdleTrainer() override {
    Cancel();
    done_.get_future().wait();
  }
  void Take() { StartRead(&frame_); }
  void Cancel() {
    if (std::exchange(cancelled_, true)) return;
    context_.TryCancel();
    RemoveHold();
  }

  int64_t bytes() const { return bytes_; }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    bytes_ += static_cast<int64_t>(frame_.Length());
    StartRead(&frame_);
  }
  void OnDone(const grpc::Status&) override { done_.set_value(); }

 private:
  // With windows that do not hold a batch that nobody takes, and a connection of its own.
  static std::shared_ptr<grpc::Channel> Channel(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(-1);
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }

  const std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_, frame_;
  std::atomic<int64_t> bytes_ = 0;
  bool cancelled_ = false;
  std::promise<void> done_;
};

class WorkerMemoryTest : public FeedFixture {
 protected:
  static constexpr int kTrainers = 64;
  static constexpr int64_t kRoom = 8;  // batches

  WorkerMemoryTest() {
    worker_ = *WorkerServer::Start({.listen_address = "unix:" + folder_ + "/cpu-0.sock",
                                    .tls = {.plain_text = true},
                                    .name = "cpu-0",
                                    .threads = 2,
                                    .batch_memory_bytes = kRoom * kBatch * large_.sample_bytes()},
                                   base::Clock::Real());
    worker_->SetProducer(&large_);
  }
  // Trainers that ask for two batches each, as for a worker that they have not measured.
  static TicketRequest Ask(int32_t rank) {
    TicketRequest request;
    for (int64_t id = 0; id < 2; ++id) {
      request.issue.push_back(
          {.id = id, .generation = 1, .rank = rank, .slots = {kBatch * id, kBatch}});
    }
    return request;
  }
  void StartTrainers() {
    for (int32_t rank = 0; rank < kTrainers; ++rank) {
      trainers_.push_back(std::make_unique<IdleTrainer>(worker_->address(), Ask(rank)));
    }
  }
  static void Await(const std::function<bool()>& come) {
    const auto deadline = std::chrono::steady_clock::now() + kLimit;
    while (!come() && std::chrono::steady_clock::now() < deadline) {
      base::Clock::Real().SleepFor(std::chrono::milliseconds(5), {});
    }
    EXPECT_TRUE(come());
  }
  void AwaitMade(int64_t batches) const {
    Await([&] { return worker_->counters().batches >= batches; });
  }
  // Both batches of one.
  void AwaitAll(const IdleTrainer& trainer) const {
    Await([&] { return trainer.bytes() > 2 * kBatch * large_.sample_bytes(); });
  }
  void ExpectNoMore() const {
    const int64_t before = worker_->counters().batches;
    base::Clock::Real().SleepFor(std::chrono::milliseconds(300), {});
    EXPECT_EQ(worker_->counters().batches, before);
  }

  static constexpr int64_t kBatch = 16;  // samples
  const CountingProducer large_{128};    // batches of 786 KB
  std::unique_ptr<WorkerServer> worker_;
  std::vector<std::unique_ptr<IdleTrainer>> trainers_;
};

TEST_F(WorkerMemoryTest, OfSixtyFourTrainersThatTakeNothingItMakesNoMoreThanItHasRoomFor) {
  StartTrainers();
  AwaitMade(kRoom);
  ExpectNoMore();
  for (const auto& trainer : trainers_) trainer->Take();
  for (const auto& trainer : trainers_) AwaitAll(*trainer);
}

TEST_F(WorkerMemoryTest, WhatTrainersThatGoHaveLeftIsRoomForTheOthers) {
  StartTrainers();
  AwaitMade(kRoom);
  const std::unique_ptr<IdleTrainer> stays = std::move(trainers_.back());
  trainers_.clear();
  stays->Take();
  AwaitAll(*stays);
}

TEST_F(WorkerMemoryTest, OneThatTakesItsBatchesIsServedWhileOthersTakeNothing) {
  StartTrainers();
  AwaitMade(kRoom);
  trainers_.resize(3);  // they hold three quarters of the room
  IdleTrainer takes(worker_->address(), Ask(/*rank=*/kTrainers));
  takes.Take();
  AwaitAll(takes);
}

// Lets nobody through but who comes first, until it is let go on.
class SecondHeldProducer : public CountingProducer {
 public:
  using CountingProducer::CountingProducer;
  absl::Status Produce(Batch* batch, int64_t index, std::optional<BadSample>* bad) const override {
    if (batch->ticket.id == kHeld && index == 0) {
      begun.set_value();
      go_on.get_future().wait();
    }
    return CountingProducer::Produce(batch, index, bad);
  }

  static constexpr int64_t kHeld = 2;
  mutable std::promise<void> begun, go_on;
};

// The stream is gone when its last ticket is done: with it goes what of it was never sent, and that
// is room for others, whose tickets the same thread is about to take.
TEST(WorkerMemoryOfOneThreadTest, WhatIsLeftOfAStreamIsLetGoOfWhereverItEnds) {
  constexpr int64_t kBatch = 16;
  SecondHeldProducer large(128);
  const auto worker =
      *WorkerServer::Start({.listen_address = "127.0.0.1:0",
                            .tls = {.plain_text = true},
                            .name = "cpu-0",
                            .threads = 1,
                            .batch_memory_bytes = 3 * kBatch * large.sample_bytes()},
                           base::Clock::Real());
  worker->SetProducer(&large);
  const auto ask = [](int32_t rank, int64_t first, int64_t count) {
    TicketRequest request;
    for (int64_t id = first; id < first + count; ++id) {
      request.issue.push_back(
          {.id = id, .generation = 1, .rank = rank, .slots = {kBatch * id, kBatch}});
    }
    return request;
  };
  auto goes = std::make_unique<IdleTrainer>(worker->address(), ask(0, 0, 3));
  large.begun.get_future().wait();  // one batch is being written, one waits for that
  IdleTrainer stays(worker->address(), ask(1, 10, 2));
  stays.Take();
  goes.reset();
  // The worker's end of the stream has ended, but for what the ticket holds of it.
  base::Clock::Real().SleepFor(std::chrono::milliseconds(300), {});
  large.go_on.set_value();
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  while (stays.bytes() <= 2 * kBatch * large.sample_bytes() &&
         std::chrono::steady_clock::now() < deadline) {
    base::Clock::Real().SleepFor(std::chrono::milliseconds(5), {});
  }
  EXPECT_GT(stays.bytes(), 2 * kBatch * large.sample_bytes());
}

}  // namespace
}  // namespace hetero::feed
