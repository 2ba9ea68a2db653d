#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "feed_fixture.h"
#include "runtime/feed/safetensors.h"
#include "runtime/feed/stream_dump.h"
#include "runtime/feed/ticket_executor.h"
#include "runtime/feed/transport/grpc_transport.h"

namespace hetero::feed {
namespace {

using FeedTest = FeedFixture;

TEST_F(FeedTest, OwnCoresServeWithoutWorkers) {
  const auto client = StartClient(1);
  ExpectTheWholeStream(*client);
  EXPECT_EQ(client->stats().batches, schedule_.size());
  EXPECT_EQ(client->stats().samples, 2000);
  EXPECT_TRUE(client->batches_by_transport().empty());
}

TEST_F(FeedTest, StoppedWhileWaiting) {
  const auto client = StartClient(0);
  stop_.request_stop();
  EXPECT_TRUE(absl::IsCancelled(client->Next(stop_.get_token()).status()));
}

// gRPC swallowed what was thrown, and the stream was neither read nor ended: the client waited for
// it for ever.
TEST_F(FeedTest, ABatchForWhichTheTrainerHadNoMemoryComesAgainOverGrpc) {
  const Transports only = {&kGrpcTransport};
  std::vector<std::unique_ptr<WorkerServer>> servers;
  servers.push_back(StartWorker("unix:" + folder_ + "/cpu-0.sock", 0, only));
  std::atomic<int> asked = 0;
  const auto client = TicketClient::Start({.byte_budget = 20 * 16 * producer_.sample_bytes(),
                                           .local_threads = 0,
                                           .tls = {.plain_text = true},
                                           .transports = only,
                                           .slabs =
                                               [&asked](int64_t bytes) {
                                                 if (++asked == 10) throw std::bad_alloc();
                                                 return Slab(bytes);
                                               }},
                                          &schedule_, &producer_, base::Clock::Real());
  client->SetRoster(Roster(servers));
  ExpectTheWholeStream(*client);
  EXPECT_GT(asked, schedule_.size());
}

TEST_F(FeedTest, TakenPortAndLongPathAreRefused) {
  const auto start = [](const std::string& address) {
    return WorkerServer::Start(
        {.listen_address = address, .tls = {.plain_text = true}, .name = "cpu-0"},
        base::Clock::Real());
  };
  const auto first = start("127.0.0.1:0");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(absl::IsUnavailable(start((*first)->address()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(start("unix:/" + std::string(200, 'a')).status()));
}

TEST_F(FeedTest, ExecutorProducesCancelsAndReportsErrors) {
  TicketExecutor executor({.name = "test", .threads = 3}, base::Clock::Real());
  const auto submit = [&](const Ticket& ticket,
                          std::promise<absl::StatusOr<std::unique_ptr<Batch>>>* done) {
    return executor.Submit(
        ticket, {[](const Ticket&) {},
                 [done](const Ticket&, auto batch) { done->set_value(std::move(batch)); }});
  };
  std::promise<absl::StatusOr<std::unique_ptr<Batch>>> whole, refused, cancelled;
  submit({.id = 1, .slots = {0, 100}}, &whole);
  const auto handle = submit({.id = 2, .slots = {0, 1}}, &cancelled);
  submit({.id = 3, .epoch = CountingProducer::kRefusedEpoch, .slots = {0, 1}}, &refused);
  EXPECT_TRUE(executor.Cancel(handle));
  EXPECT_FALSE(executor.Cancel(handle));
  executor.SetProducer(&producer_);
  const auto batch = whole.get_future().get();
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ((*batch)->count(), 100);
  ASSERT_EQ((*batch)->bad_samples.size(), 1u);
  EXPECT_EQ((*batch)->producer, "test");
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ((*batch)->sample_ids[static_cast<size_t>(i)], i);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.get_future().get().status()));
  EXPECT_EQ(producer_.produced, 100);
}

TEST_F(FeedTest, ExecutorCanBeDestroyedInTheMiddleOfABatch) {
  std::latch started(1);
  producer_.SetOpen(false);
  auto executor = std::make_unique<TicketExecutor>(TicketExecutor::Options{.name = "test"},
                                                   base::Clock::Real());
  executor->SetProducer(&producer_);
  executor->Submit({.slots = {0, 1'000'000}},
                   {[&](const Ticket&) { started.count_down(); }, [](const Ticket&, auto) {}});
  started.wait();
  std::thread end([&] { executor.reset(); });
  producer_.SetOpen(true);
  end.join();
}

TEST_F(FeedTest, StreamDumpHoldsTheBatch) {
  const auto dump = StreamDump::Create(folder_ + "/dump");
  ASSERT_TRUE(dump.ok());
  const CountingProducer small;
  Batch batch = small.Allocate({.epoch = 1, .step = 12, .slots = {6, 2}}, NewSlab);
  for (const int64_t i : {0, 1}) {
    std::optional<BadSample> bad;
    ASSERT_TRUE(small.Produce(&batch, i, &bad).ok());
  }
  ASSERT_TRUE((*dump)->Write(batch).ok());
  const auto file = ReadSafetensors(folder_ + "/dump/rank0-step000012.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata,
            (std::map<std::string, std::string>{{"epoch", "1"}, {"step", "12"}, {"rank", "0"}}));
  const Tensor& images = file->tensors.at("images");
  EXPECT_EQ(images.shape, (std::vector<int64_t>{2, 2, 2, 3}));
  EXPECT_EQ(images.data, std::vector<uint8_t>(batch.images.data(), batch.images.data() + 24));
  const Tensor& slots = file->tensors.at("slots");
  EXPECT_EQ(slots.data, (std::vector<uint8_t>{6, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(file->tensors.at("labels").data, (std::vector<uint8_t>{1, 0, 0, 0, 2, 0, 0, 0}));
}

}  // namespace
}  // namespace hetero::feed
