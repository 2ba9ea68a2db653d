// Workers that are there and cannot be relied on: what comes of their batches, and what is said of
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
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

// Of another job, which shows in the first sample that is read.
class OnceForeignDataset : public HarmfulDataset {
 public:
  OnceForeignDataset() : HarmfulDataset(kSamples, -1, Harm::kBadBytes) {}
  int32_t classes() const override { return 5; }
  absl::Status Read(int64_t id, source::RawSample* sample) const override {
    const absl::Status status = HarmfulDataset::Read(id, sample);
    if (!shown_.exchange(true)) sample->label = 4;
    return status;
  }

 private:
  mutable std::atomic<bool> shown_ = false;
};

// Storage errors are tried again at once.
class ImpatientClock : public base::Clock {
 public:
  base::Instant Now() const override { return base::Clock::Real().Now(); }
  base::WallTime WallNow() const override { return base::Clock::Real().WallNow(); }
  bool SleepFor(base::Duration, std::stop_token) override { return true; }
};

// A minute of it is over in 0.6 s.
class HastyClock : public ImpatientClock {
 public:
  base::Instant Now() const override {
    const base::Instant now = base::Clock::Real().Now();
    return now + 99 * (now - started_);
  }

 private:
  const base::Instant started_ = base::Clock::Real().Now();
};

// Comes to no end with the first sample until it may.
class StuckDataset : public HarmfulDataset {
 public:
  StuckDataset(std::latch* begun, std::latch* may_end)
      : HarmfulDataset(kSamples, -1, Harm::kBadBytes), begun_(begun), may_end_(may_end) {}
  absl::Status Read(int64_t id, source::RawSample* sample) const override {
    if (!begun_->try_wait()) begun_->count_down();
    may_end_->wait();
    return HarmfulDataset::Read(id, sample);
  }

 private:
  std::latch* const begun_;
  std::latch* const may_end_;
};

// A thread of its own does the work, which a child of fork() does not have.
class PooledDataset : public HarmfulDataset {
 public:
  PooledDataset() : HarmfulDataset(kSamples, -1, Harm::kBadBytes) {
    pool_ = std::jthread([this](std::stop_token stop) {
      const base::MutexLock lock(mutex_);
      while (changed_.Wait(mutex_, stop, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return done_ < asked_;
      })) {
        ++done_;
        changed_.NotifyAll();
      }
    });
  }
  absl::Status Read(int64_t id, source::RawSample* sample) const override {
    const base::MutexLock lock(mutex_);
    const int own = ++asked_;
    changed_.NotifyAll();
    while (done_ < own) changed_.Wait(mutex_);
    return HarmfulDataset::Read(id, sample);
  }

 private:
  mutable base::Mutex mutex_;
  mutable base::CondVar changed_;
  mutable int asked_ ABSL_GUARDED_BY(mutex_) = 0;
  int done_ ABSL_GUARDED_BY(mutex_) = 0;
  std::jthread pool_;
};

class WorkerFaultsTest : public ::testing::Test {
 protected:
  std::unique_ptr<SampleProducer> Producer(std::unique_ptr<source::Dataset> dataset,
                                           const std::vector<api::OperatorSpec>& pipeline = {}) {
    api::HeteroTrainingJob job;
    job.spec.training.seed = kSeed;
    job.spec.pipeline = pipeline;
    return *SampleProducer::Create(job, std::move(dataset), nullptr, clock_);
  }
  static std::unique_ptr<source::Dataset> Dataset(int64_t samples) {
    return std::make_unique<HarmfulDataset>(samples, -1, Harm::kBadBytes);
  }
  void StartWorker(std::unique_ptr<SampleProducer> producer,
                   base::Clock& clock = base::Clock::Real()) {
    const std::string name = "cpu-" + std::to_string(servers_.size());
    auto server = WorkerServer::Start({.listen_address = "unix:" + (folder_ / name),
                                       .tls = {.plain_text = true},
                                       .name = name,
                                       .threads = 1},
                                      clock);
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
  HastyClock hasty_clock_;
  std::latch begun_[2] = {std::latch(1), std::latch(1)};
  std::latch may_end_{1};
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

TEST_F(WorkerFaultsTest, AWorkerOfOtherDataIsNotBelievedAgainByTheNextStreamNorWhenItComesBack) {
  const auto producer = Producer(Dataset(kSamples));
  StartWorker(Producer(std::make_unique<OnceForeignDataset>()));
  const job::Schedule schedule(
      {.training = {.samples = kSamples, .batch_size_per_worker = 4, .epochs = 1}}, 0);
  TicketClient::Options options{.byte_budget = 4096,
                                .local_threads = 0,
                                .expected = producer.get(),
                                .tls = {.plain_text = true}};
  std::stop_source stop;
  const std::jthread watchdog([&stop](std::stop_token done) {
    if (base::Clock::Real().SleepFor(std::chrono::seconds(30), done)) stop.request_stop();
  });
  for (const int64_t first : {0, 7}) {
    options.first_batch = first;
    const auto client =
        TicketClient::Start(options, &schedule, producer.get(), base::Clock::Real());
    for (int i = 0; i < 2; ++i) {
      client->SetRoster({});
      client->SetRoster(roster_);
      const int64_t before = servers_[0]->counters().batches;
      do {
        const absl::Status status = client->Next(stop.get_token()).status();
        ASSERT_TRUE(absl::IsFailedPrecondition(status)) << status;
        EXPECT_THAT(std::string(status.message()), HasSubstr("label 4 where"));
        std::this_thread::yield();
      } while (servers_[0]->counters().batches < before + 3 && !stop.stop_requested());
      EXPECT_FALSE(stop.stop_requested());
    }
  }
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

// One that was taken for frozen answers together with the one that its ticket was given to: the
// second batch was a failure of a worker that had done all that it was asked for.
TEST_F(WorkerFaultsTest, ASecondBatchOfATicketThatIsBeingFinishedIsADuplicate) {
  api::OperatorSpec crop;
  crop.op = api::OperatorKind::kCenterCrop;
  crop.size = api::Size{1, 1};
  const auto producer = Producer(Dataset(kSamples), {crop});
  for (std::latch& one : begun_) {
    StartWorker(Producer(std::make_unique<StuckDataset>(&one, &may_end_), {crop}));
  }
  const job::Schedule schedule(
      {.training = {.samples = 4, .batch_size_per_worker = 4, .epochs = 1}}, 0);
  std::stop_source stop;
  const std::jthread watchdog([&stop](std::stop_token done) {
    if (base::Clock::Real().SleepFor(std::chrono::seconds(30), done)) stop.request_stop();
  });
  // The first is not finished before the second is there.
  std::atomic<int> halves = 0;
  const auto slabs = [&](int64_t bytes) {
    if (bytes == 4 * 2 * 2) {
      ++halves;
      return Slab(bytes);
    }
    while (halves < 2 && !stop.stop_requested()) std::this_thread::yield();
    base::Clock::Real().SleepFor(std::chrono::milliseconds(200), {});  // until it was handed on
    return Slab(bytes);
  };
  const auto client = TicketClient::Start({.byte_budget = 4096,
                                           .local_threads = 0,
                                           .placement = {.cuts = {{.left = 1}}},
                                           .finisher = producer.get(),
                                           .tls = {.plain_text = true},
                                           .slabs = slabs},
                                          &schedule, producer.get(), base::Clock::Real());
  client->SetRoster(roster_);
  for (std::latch& one : begun_) one.wait();
  may_end_.count_down();
  const auto batch = client->Next(stop.get_token());
  ASSERT_TRUE(batch.ok()) << batch.status();
  while (client->stats().duplicates_dropped == 0 && !stop.stop_requested()) {
    base::Clock::Real().SleepFor(std::chrono::milliseconds(5), {});
  }
  EXPECT_EQ(client->stats().duplicates_dropped, 1);
}

TEST_F(WorkerFaultsTest, AnOperatorWithThreadsOfItsOwnFailsNoJobWhenASampleIsSuspected) {
  const auto producer = Producer(Dataset(kSamples));
  const job::Schedule schedule(
      {.training = {.samples = kSamples, .batch_size_per_worker = 4, .epochs = 1}}, 0);
  const auto client =
      TicketClient::Start({.byte_budget = 4096, .local_threads = 0, .tls = {.plain_text = true}},
                          &schedule, producer.get(), base::Clock::Real());
  for (std::latch& one : begun_) {  // two go away with the first ticket
    StartWorker(Producer(std::make_unique<StuckDataset>(&one, &may_end_)));
    client->SetRoster({roster_.back()});
    one.wait();
  }
  StartWorker(Producer(std::make_unique<PooledDataset>()), hasty_clock_);
  client->SetRoster({roster_.back()});
  std::stop_source stop;
  const std::jthread watchdog([&stop](std::stop_token done) {
    if (base::Clock::Real().SleepFor(std::chrono::seconds(30), done)) stop.request_stop();
  });
  const auto batch = client->Next(stop.get_token());
  may_end_.count_down();
  EXPECT_TRUE(batch.ok()) << batch.status();
}

}  // namespace
}  // namespace hetero::feed
