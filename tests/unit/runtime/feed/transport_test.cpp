// What every transport has to do, whichever it is: the stream of batches is the same, and batches
// come by it where both sides have it. One that is added to the list is tested here.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "feed_fixture.h"
#include "harmful_dataset.h"
#include "tests/support/transports.h"
#include "tests/unit/base/test_certificates.h"

namespace hetero::feed {
namespace {

class TransportTest : public FeedFixture, public ::testing::WithParamInterface<const Transport*> {
 protected:
  std::string Address(int index = 0) const {
    return testing::ListenAddress(*GetParam(), folder_ + "/" + std::to_string(index) + ".sock");
  }
  std::unique_ptr<WorkerServer> Worker(int index = 0) {
    return StartWorker(Address(index), index, only_);
  }
  int64_t Came(const TicketClient& client) const {
    const auto batches = client.batches_by_transport();
    const auto it = batches.find(GetParam()->name);
    return it == batches.end() ? 0 : it->second;
  }
  // Takes a batch at a time: a transport may be there a little later than the stream.
  void TakeUntilBatchesComeByIt(TicketClient& client) {
    const int64_t before = Came(client);
    while (Came(client) == before && next_ < schedule_.size()) {
      ASSERT_NO_FATAL_FAILURE(Take(client, 1));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_GT(Came(client), before);
  }

  const Transports only_ = testing::Only(GetParam());
};

TEST_P(TransportTest, StreamIsTheSameForAnyNumberOfWorkers) {
  for (const int workers : {1, 3}) {
    SCOPED_TRACE(workers);
    std::vector<std::unique_ptr<WorkerServer>> servers;
    for (int i = 0; i < workers; ++i) servers.push_back(Worker(i));
    const auto client = StartClient(0, only_);
    client->SetRoster(Roster(servers));
    next_ = 0;
    digest_ = {};
    ExpectTheWholeStream(*client);
    EXPECT_EQ(client->stats().samples, 2000);
    int64_t served = 0;
    for (const auto& server : servers) served += server->counters().batches;
    EXPECT_GE(served, schedule_.size());
  }
}

TEST_P(TransportTest, BatchesComeByIt) {
  std::vector<std::unique_ptr<WorkerServer>> servers;
  servers.push_back(Worker());
  const auto client = StartClient(0, only_);
  client->SetRoster(Roster(servers));
  ASSERT_NO_FATAL_FAILURE(TakeUntilBatchesComeByIt(*client));
  ExpectTheWholeStream(*client);
}

TEST_P(TransportTest, BatchesComeByItUnderTls) {
  const base::TestAuthority authority;
  const auto leaf = authority.Issue("peer");
  const auto write = [this](const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  };
  const base::TlsOptions tls = {.ca_file = write("ca.crt", authority.certificate_pem()),
                                .certificate_file = write("tls.crt", leaf.certificate_pem),
                                .key_file = write("tls.key", leaf.key_pem)};
  std::vector<std::unique_ptr<WorkerServer>> servers;
  servers.push_back(StartWorker(Address(), 0, only_, tls));
  const auto client = StartClient(0, only_, tls);
  client->SetRoster(Roster(servers));
  ASSERT_NO_FATAL_FAILURE(TakeUntilBatchesComeByIt(*client));
  ExpectTheWholeStream(*client);
}

TEST_P(TransportTest, KilledWorkersTicketsAreServedByTheOthers) {
  std::vector<std::unique_ptr<WorkerServer>> servers;
  for (const int i : {0, 1}) servers.push_back(Worker(i));
  const auto client = StartClient(0, only_);
  client->SetRoster(Roster(servers));
  ASSERT_NO_FATAL_FAILURE(Take(*client, 20));
  servers.front().reset();
  ExpectTheWholeStream(*client);
}

TEST_P(TransportTest, WorkerThatComesBackServesByItAgain) {
  std::vector<std::unique_ptr<WorkerServer>> servers;
  servers.push_back(Worker());
  const std::vector<WorkerAddress> roster = Roster(servers);
  const auto client = StartClient(0, only_);
  client->SetRoster(roster);
  ASSERT_NO_FATAL_FAILURE(TakeUntilBatchesComeByIt(*client));
  servers.front().reset();
  servers.front() = StartWorker(roster.front().address, 0, only_);
  ASSERT_NO_FATAL_FAILURE(TakeUntilBatchesComeByIt(*client));
  ExpectTheWholeStream(*client);
  EXPECT_GT(servers.front()->counters().batches, 0);
}

TEST_P(TransportTest, OwnCoresGoOnWhenTheOnlyWorkerLeavesTheRoster) {
  std::vector<std::unique_ptr<WorkerServer>> servers;
  servers.push_back(Worker());
  const auto client = StartClient(1, only_);
  client->SetRoster(Roster(servers));
  ASSERT_NO_FATAL_FAILURE(Take(*client, 1));
  client->SetRoster({});
  ExpectTheWholeStream(*client);
}

TEST_P(TransportTest, WorkerThatDoesNotKnowItSendsWithoutIt) {
  std::vector<std::unique_ptr<WorkerServer>> servers;
  servers.push_back(StartWorker(Address(), 0, {EveryTransport().back()}));
  const auto client = StartClient(0, only_);
  client->SetRoster(Roster(servers));
  ExpectTheWholeStream(*client);
  EXPECT_GT(client->batches_by_transport()[EveryTransport().back()->name], 0);
}

TEST_P(TransportTest, TrainerThatDoesNotKnowItIsSentToWithoutIt) {
  std::vector<std::unique_ptr<WorkerServer>> servers;
  servers.push_back(Worker());
  const auto client = StartClient(0, {EveryTransport().back()});
  client->SetRoster(Roster(servers));
  ExpectTheWholeStream(*client);
  EXPECT_EQ(client->batches_by_transport().size(), 1u);
}

// Pictures of 75 MB, each filled with its id.
class LargeDataset : public HarmfulDataset {
 public:
  LargeDataset() : HarmfulDataset(4, -1, Harm::kBadBytes) {}
  api::ImageShape image() const override { return {5000, 5000, 3}; }
  absl::Status Read(int64_t id, source::RawSample* sample) const override {
    const absl::Status status = HarmfulDataset::Read(id, sample);
    sample->bytes.assign(static_cast<size_t>(5000) * 5000 * 3, static_cast<uint8_t>(id));
    return status;
  }
};

TEST_P(TransportTest, ABatchWhoseOperatorsAreLeftToTheTrainerMayBeLargerThanTheBudget) {
  api::HeteroTrainingJob job;
  api::OperatorSpec crop;
  crop.op = api::OperatorKind::kCenterCrop;
  crop.size = api::Size{8, 8};
  job.spec.pipeline = {crop};
  const auto producer = *SampleProducer::Create(job, std::make_unique<LargeDataset>(), nullptr);
  const auto server = WorkerServer::Start({.listen_address = Address(),
                                           .tls = {.plain_text = true},
                                           .name = "cpu-0",
                                           .threads = 1,
                                           .transports = only_},
                                          base::Clock::Real());
  ASSERT_TRUE(server.ok()) << server.status();
  (*server)->SetProducer(producer.get());
  const job::Schedule schedule(
      {.training = {.samples = 4, .batch_size_per_worker = 1, .epochs = 1}}, 0);
  const auto client = TicketClient::Start({.byte_budget = 1 << 10,
                                           .local_threads = 0,
                                           .placement = {.cuts = {{.left = 1}}},
                                           .finisher = producer.get(),
                                           .tls = {.plain_text = true},
                                           .transports = only_},
                                          &schedule, producer.get(), base::Clock::Real());
  client->SetRoster({{"cpu-0", (*server)->address(), 1}});
  const std::jthread watchdog([this](std::stop_token done) {
    if (base::Clock::Real().SleepFor(std::chrono::seconds(30), done)) stop_.request_stop();
  });
  for (int64_t id = 0; id < schedule.size(); ++id) {
    const auto batch = client->Next(stop_.get_token());
    ASSERT_TRUE(batch.ok()) << batch.status();
    ASSERT_EQ((*batch)->images.size(), 8 * 8 * 3);
    EXPECT_EQ((*batch)->images.data()[0], (*batch)->sample_ids[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, TransportTest, ::testing::ValuesIn(EveryTransport()),
                         testing::TransportName);

TEST(Transports, LastOneFitsAnyWorkerAndNamesDiffer) {
  const Transports& all = EveryTransport();
  for (const char* address : {"unix:/run/cpu-0", "127.0.0.1:7080", "cpu-0.job:7080"}) {
    EXPECT_TRUE(all.back()->fits(address)) << address;
  }
  for (const Transport* one : all) {
    for (const Transport* other : all) EXPECT_EQ(one == other, one->name == other->name);
  }
}

}  // namespace
}  // namespace hetero::feed
