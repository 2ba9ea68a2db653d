#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <latch>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "counting_producer.h"
#include "runtime/feed/digest.h"
#include "runtime/feed/discard_loop.h"
#include "runtime/feed/safetensors.h"
#include "runtime/feed/stream_dump.h"
#include "runtime/feed/ticket_client.h"
#include "runtime/feed/ticket_executor.h"
#include "runtime/feed/worker_server.h"
#include "tests/unit/base/test_certificates.h"

namespace hetero::feed {
namespace {

class FeedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "hetero-feed-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<WorkerServer> StartWorker(int index) {
    auto server = WorkerServer::Start({.listen_address = Address(index),
                                       .tls = {.plain_text = true},
                                       .name = "cpu-" + std::to_string(index),
                                       .threads = 2},
                                      base::Clock::Real());
    EXPECT_TRUE(server.ok()) << server.status();
    (*server)->SetProducer(&producer_);
    return *std::move(server);
  }
  std::string Address(int index) const {
    return "unix:" + folder_ + "/" + std::to_string(index) + ".sock";
  }
  WorkerAddress Entry(int index, int64_t incarnation = 1) const {
    return {"cpu-" + std::to_string(index), Address(index), incarnation};
  }
  std::unique_ptr<TicketClient> StartClient(int local_threads) {
    return TicketClient::Start({.byte_budget = 20 * 16 * CountingProducer::kSampleBytes,
                                .local_threads = local_threads,
                                .tls = {.plain_text = true}},
                               &schedule_, &producer_, base::Clock::Real());
  }
  // Takes everything that is left, and checks its order.
  job::StreamDigest Drain(TicketClient& client, int64_t next = 0) {
    job::StreamDigest digest;
    const absl::Status status = DiscardAll(
        client,
        [&](const Batch& batch) {
          EXPECT_EQ(batch.ticket.id, next++);
          AddToDigest(5, batch, &digest);
          return absl::OkStatus();
        },
        deadline_.get_token());
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(next, schedule_.size());
    return digest;
  }
  job::StreamDigest Expected() {
    job::StreamDigest digest;
    for (int64_t id = 0; id < schedule_.size(); ++id) {
      const job::PlannedBatch planned = schedule_.At(id);
      for (int64_t i = 0; i < planned.slots.count; ++i) {
        const int64_t slot = planned.slots.first + i;
        const std::string bytes(12, static_cast<char>(slot * 7 + planned.epoch));
        digest.Add(5, planned.epoch, planned.step, slot, slot + 1000 * planned.epoch,
                   base::Crc32c(bytes.data(), bytes.size()));
      }
    }
    return digest;
  }

  std::string folder_;
  std::stop_source deadline_;
  CountingProducer producer_;
  const job::Schedule schedule_{
      {.training = {.samples = 1000, .batch_size_per_worker = 16, .epochs = 2}}, 0};
};

TEST_F(FeedTest, DigestIsTheSameForAnyNumberOfWorkers) {
  for (const int workers : {0, 1, 3}) {
    SCOPED_TRACE(workers);
    std::vector<std::unique_ptr<WorkerServer>> servers;
    std::vector<WorkerAddress> roster;
    for (int i = 0; i < workers; ++i) {
      servers.push_back(StartWorker(i));
      roster.push_back(Entry(i));
    }
    const auto client = StartClient(workers == 0 ? 1 : 0);
    client->SetRoster(roster);
    EXPECT_EQ(Drain(*client).ToHex(), Expected().ToHex());
    EXPECT_EQ(client->stats().batches, schedule_.size());
    EXPECT_EQ(client->stats().samples, 2000);
    int64_t served = 0;
    for (const auto& server : servers) served += server->counters().batches;
    EXPECT_GE(served, workers == 0 ? 0 : schedule_.size());
  }
}

TEST_F(FeedTest, BatchesComePastGrpcUnderTlsToo) {
  const base::TestAuthority authority;
  const auto leaf = authority.Issue("peer");
  const auto write = [this](const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  };
  const base::TlsOptions tls = {.ca_file = write("ca.crt", authority.certificate_pem()),
                                .certificate_file = write("tls.crt", leaf.certificate_pem),
                                .key_file = write("tls.key", leaf.key_pem)};
  for (const base::TlsOptions& security : {tls, base::TlsOptions{.plain_text = true}}) {
    SCOPED_TRACE(security.plain_text);
    const auto worker = WorkerServer::Start(
        {.listen_address = "127.0.0.1:0", .tls = security, .name = "cpu-0", .threads = 2},
        base::Clock::Real());
    ASSERT_TRUE(worker.ok()) << worker.status();
    (*worker)->SetProducer(&producer_);
    const auto client =
        TicketClient::Start({.byte_budget = 20 * 16 * CountingProducer::kSampleBytes,
                             .local_threads = 0,
                             .tls = security},
                            &schedule_, &producer_, base::Clock::Real());
    client->SetRoster({{"cpu-0", (*worker)->address(), 1}});
    job::StreamDigest digest;
    int64_t taken = 0;
    // Leaves batches for the connection, which is there a little later than the stream.
    for (; client->stats().batches_direct == 0 && taken < schedule_.size(); ++taken) {
      const auto batch = client->Next(deadline_.get_token());
      ASSERT_TRUE(batch.ok()) << batch.status();
      AddToDigest(5, **batch, &digest);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    EXPECT_GT(client->stats().batches_direct, 0);
    digest += Drain(*client, taken);
    EXPECT_EQ(digest.ToHex(), Expected().ToHex());
  }
}

TEST_F(FeedTest, KilledWorkersTicketsAreServedByTheOthers) {
  auto first = StartWorker(0);
  const auto second = StartWorker(1);
  const auto client = StartClient(0);
  client->SetRoster({Entry(0), Entry(1)});
  job::StreamDigest digest;
  for (int i = 0; i < 20; ++i) {
    const auto batch = client->Next(deadline_.get_token());
    ASSERT_TRUE(batch.ok()) << batch.status();
    AddToDigest(5, **batch, &digest);
  }
  first.reset();
  digest += Drain(*client, 20);
  EXPECT_EQ(digest.ToHex(), Expected().ToHex());
}

TEST_F(FeedTest, WorkerThatComesBackIsDialledAgain) {
  auto worker = StartWorker(0);
  const auto client = StartClient(0);
  client->SetRoster({Entry(0)});
  ASSERT_TRUE(client->Next(deadline_.get_token()).ok());
  worker.reset();
  worker = StartWorker(0);
  Drain(*client, 1);
  EXPECT_GT(worker->counters().batches, 0);
}

TEST_F(FeedTest, LocalCoresGoOnWhenTheOnlyWorkerLeavesTheRoster) {
  const auto worker = StartWorker(0);
  const auto client = StartClient(1);
  client->SetRoster({Entry(0)});
  ASSERT_TRUE(client->Next(deadline_.get_token()).ok());
  client->SetRoster({});
  Drain(*client, 1);
}

TEST_F(FeedTest, StoppedWhileWaiting) {
  const auto client = StartClient(0);
  deadline_.request_stop();
  EXPECT_TRUE(absl::IsCancelled(client->Next(deadline_.get_token()).status()));
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
  Batch batch = producer_.Allocate({.epoch = 1, .step = 12, .slots = {6, 2}}, NewSlab);
  for (const int64_t i : {0, 1}) {
    std::optional<BadSample> bad;
    ASSERT_TRUE(producer_.Produce(&batch, i, &bad).ok());
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
