// Workers that are there and cannot be relied on: what comes of their batches, and what is said of
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "harmful_dataset.h"
#include "runtime/feed/digest.h"
#include "runtime/feed/ticket_client.h"
#include "runtime/feed/worker_server.h"
#include "tests/support/temporary_folder.h"

namespace hetero::feed {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kSeed = 7;
constexpr int64_t kSamples = 200;

// Nothing of it can be read.
class StaleDataset : public HarmfulDataset {
 public:
  StaleDataset() : HarmfulDataset(kSamples, -1, Harm::kBadBytes) {}
  absl::Status Read(int64_t id, source::RawSample*) const override {
    return absl::NotFoundError(Describe(id) + ": stale file handle");
  }
};

// Storage errors are tried again at once.
class ImpatientClock : public base::Clock {
 public:
  base::Instant Now() const override { return base::Clock::Real().Now(); }
  base::WallTime WallNow() const override { return base::Clock::Real().WallNow(); }
  bool SleepFor(base::Duration, std::stop_token) override { return true; }
};

class WorkerFaultsTest : public ::testing::Test {
 protected:
  std::unique_ptr<SampleProducer> Producer(std::unique_ptr<source::Dataset> dataset) {
    api::HeteroTrainingJob job;
    job.spec.training.seed = kSeed;
    return *SampleProducer::Create(job, std::move(dataset), nullptr, clock_);
  }
  static std::unique_ptr<source::Dataset> Dataset(int64_t samples) {
    return std::make_unique<HarmfulDataset>(samples, -1, Harm::kBadBytes);
  }
  void StartWorker(std::unique_ptr<SampleProducer> producer) {
    const std::string name = "cpu-" + std::to_string(servers_.size());
    auto server = WorkerServer::Start({.listen_address = "unix:" + (folder_ / name),
                                       .tls = {.plain_text = true},
                                       .name = name,
                                       .threads = 1},
                                      base::Clock::Real());
    ASSERT_TRUE(server.ok()) << server.status();
    (*server)->SetProducer(producer.get());
    producers_.push_back(std::move(producer));
    roster_.push_back({name, (*server)->address(), 1});
    servers_.push_back(*std::move(server));
  }
  // The whole stream from the workers alone, held to what `producer` would have made.
  std::string Digest(const SampleProducer& producer) {
    const job::Schedule schedule(
        {.training = {.samples = kSamples, .batch_size_per_worker = 4, .epochs = 40}}, 0);
    const auto client = TicketClient::Start({.byte_budget = 64 * 4 * producer.sample_bytes(),
                                             .local_threads = roster_.empty() ? 1 : 0,
                                             .expected = &producer,
                                             .tls = {.plain_text = true}},
                                            &schedule, &producer, base::Clock::Real());
    client->SetRoster(roster_);
    job::StreamDigest digest;
    for (int64_t id = 0; id < schedule.size(); ++id) {
      const auto batch = client->Next({});
      EXPECT_TRUE(batch.ok()) << batch.status();
      if (!batch.ok()) break;
      AddToDigest(kSeed, **batch, &digest);
    }
    faults_ = client->TakeFaults();
    return digest.ToHex();
  }

  ImpatientClock clock_;
  const hetero::testing::TemporaryFolder folder_;
  std::vector<std::unique_ptr<SampleProducer>> producers_;
  std::vector<std::unique_ptr<WorkerServer>> servers_;  // destroyed before what they serve from
  std::vector<WorkerAddress> roster_;
  std::vector<WorkerFault> faults_;
};

// A file was added since the others opened the dataset: another order of samples.
TEST_F(WorkerFaultsTest, BatchesOfAWorkerThatSeesOtherDataAreRefusedAndItIsNamed) {
  const auto producer = Producer(Dataset(kSamples));
  const std::string undisturbed = Digest(*producer);
  StartWorker(Producer(Dataset(kSamples + 1)));
  StartWorker(Producer(Dataset(kSamples)));
  EXPECT_EQ(Digest(*producer), undisturbed);
  ASSERT_THAT(faults_, SizeIs(1));
  EXPECT_THAT(faults_[0].what, HasSubstr("rank 0 has put cpu-0 into quarantine"));
  EXPECT_THAT(faults_[0].what, HasSubstr("it does not see the data that this rank sees"));
}

TEST_F(WorkerFaultsTest, WorkersWithStaleMountsFailNoJob) {
  const auto producer = Producer(Dataset(kSamples));
  const std::string undisturbed = Digest(*producer);
  EXPECT_THAT(faults_, IsEmpty());
  for (int i = 0; i < 3; ++i) StartWorker(Producer(std::make_unique<StaleDataset>()));
  StartWorker(Producer(Dataset(kSamples)));
  EXPECT_EQ(Digest(*producer), undisturbed);
  ASSERT_THAT(faults_, SizeIs(3));
  for (const WorkerFault& fault : faults_) {
    EXPECT_THAT(fault.what, HasSubstr("jpg: stale file handle"));
    EXPECT_FALSE(fault.recovery_seconds.has_value());
  }
}

}  // namespace
}  // namespace hetero::feed
