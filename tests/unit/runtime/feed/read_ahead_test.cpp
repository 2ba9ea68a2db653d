#include "runtime/feed/read_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/fake_clock.h"
#include "runtime/feed/sample_producer.h"
#include "runtime/feed/ticket_executor.h"

namespace hetero::feed {
namespace {

constexpr std::chrono::seconds kPatience(60);

// A storage whose reads wait until so many are underway, or until it is opened for all.
class SlowStorage {
 public:
  explicit SlowStorage(int wanted) : wanted_(wanted) {}

  absl::Status Read(int64_t id, source::RawSample* sample) {
    std::unique_lock lock(mutex_);
    ++counts_[id];
    most_ = std::max(most_, ++underway_);
    changed_.notify_all();
    const bool together =
        changed_.wait_for(lock, kPatience, [this] { return open_ || most_ >= wanted_; });
    --underway_;
    if (!together) return absl::DeadlineExceededError("nobody else reads");
    if (id == bad_) return absl::DataLossError("damaged");
    if (id == thrown_) throw std::runtime_error("a library's own words");
    sample->encoding = source::Encoding::kRaw;
    sample->shape = {2, 2, 1};
    sample->bytes.assign(bytes_, static_cast<uint8_t>(id));
    sample->label = static_cast<int32_t>(id % 4);
    return absl::OkStatus();
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // Until so many reads have begun.
  bool WaitForReads(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return Total() >= count; });
  }
  int reads() {
    const std::lock_guard lock(mutex_);
    return Total();
  }
  int reads_of(int64_t id) {
    const std::lock_guard lock(mutex_);
    return counts_[id];
  }

  int64_t bad_ = -1;
  int64_t thrown_ = -1;
  size_t bytes_ = 4;

 private:
  int Total() const {
    int total = 0;
    for (const auto& [id, count] : counts_) total += count;
    return total;
  }

  const int wanted_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, int> counts_;
  int underway_ = 0;
  int most_ = 0;
  bool open_ = false;
};

using Runs = std::vector<source::Dataset::Run>;
using Lists = std::vector<std::vector<int64_t>>;

Runs RunsOf(const Lists& lists, int64_t bytes = 0) {
  Runs runs;
  for (const std::vector<int64_t>& ids : lists) runs.push_back({.ids = ids, .bytes = bytes});
  return runs;
}

// Each by itself.
Runs Ids(int64_t count) {
  Runs runs;
  for (int64_t id = 0; id < count; ++id) runs.push_back({.ids = {id}});
  return runs;
}

class ReadAheadTest : public ::testing::Test {
 protected:
  std::unique_ptr<ReadAhead> Make(SlowStorage* storage, ReadAhead::Options options = {}) {
    return std::make_unique<ReadAhead>(options, [storage](job::Split, absl::Span<const int64_t> ids,
                                                          absl::Span<source::RawSample> samples) {
      std::vector<absl::Status> statuses;
      for (size_t i = 0; i < ids.size(); ++i) {
        statuses.push_back(storage->Read(ids[i], &samples[i]));
      }
      return statuses;
    });
  }
  // Of the training set; "none" where nobody has begun.
  std::string Take(ReadAhead& ahead, int64_t id) {
    const std::optional<absl::Status> status = ahead.Take(job::Split::kTrain, id, &sample_);
    return status ? std::string(status->ok() ? "read" : status->message()) : "none";
  }

  source::RawSample sample_;
};

TEST_F(ReadAheadTest, ReadsManyAtATime) {
  SlowStorage storage(16);
  const auto ahead = Make(&storage, {.first_reads = 16});
  const auto expected = ahead->Expect(job::Split::kTrain, Ids(16));
  ASSERT_TRUE(storage.WaitForReads(16));
  for (int64_t id = 0; id < 16; ++id) {
    ASSERT_EQ(Take(*ahead, id), "read");
    EXPECT_EQ(sample_.bytes, std::vector<uint8_t>(4, static_cast<uint8_t>(id)));
    EXPECT_EQ(sample_.label, id % 4);
  }
}

TEST_F(ReadAheadTest, ReadsMoreAtATimeWhereSomebodyHadToWait) {
  SlowStorage storage(4);
  const auto ahead = Make(&storage, {.first_reads = 1});
  const auto expected = ahead->Expect(job::Split::kTrain, Ids(16));
  std::vector<std::jthread> takers;
  for (int64_t first = 0; first < 4; ++first) {
    takers.emplace_back([&, first] {
      for (int64_t id = first; id < 16; id += 4) {
        source::RawSample sample;
        const auto taken = ahead->Take(job::Split::kTrain, id, &sample);
        EXPECT_TRUE(taken ? taken->ok() : storage.Read(id, &sample).ok());
      }
    });
  }
}

TEST_F(ReadAheadTest, GivesEachSampleOnceAndOfItsSplit) {
  SlowStorage storage(1);
  const auto ahead = Make(&storage);
  EXPECT_EQ(Take(*ahead, 0), "none");
  const auto expected = ahead->Expect(job::Split::kTrain, RunsOf({{7}}));
  ASSERT_TRUE(storage.WaitForReads(1));
  EXPECT_EQ(ahead->Take(job::Split::kValidation, 7, &sample_), std::nullopt);
  EXPECT_EQ(Take(*ahead, 7), "read");
  EXPECT_EQ(Take(*ahead, 7), "none");
}

TEST_F(ReadAheadTest, OfASampleThatTwoTicketsExpectReadsOnce) {
  SlowStorage storage(1);
  const auto ahead = Make(&storage);
  const auto first = ahead->Expect(job::Split::kTrain, RunsOf({{7}}));
  const auto second = ahead->Expect(job::Split::kTrain, RunsOf({{7}, {8}}));
  ASSERT_TRUE(storage.WaitForReads(2));
  EXPECT_EQ(Take(*ahead, 8), "read");
  EXPECT_EQ(Take(*ahead, 7), "read");
  EXPECT_EQ(Take(*ahead, 7), "none");
  EXPECT_EQ(storage.reads(), 2);
}

TEST_F(ReadAheadTest, GivesErrorsAndWhatWasThrown) {
  SlowStorage storage(1);
  storage.bad_ = 1;
  storage.thrown_ = 2;
  const auto ahead = Make(&storage);
  const auto expected = ahead->Expect(job::Split::kTrain, Ids(3));
  ASSERT_TRUE(storage.WaitForReads(3));
  EXPECT_EQ(Take(*ahead, 1), "damaged");
  EXPECT_NE(Take(*ahead, 2).find("a library's own words"), std::string::npos);
  EXPECT_EQ(Take(*ahead, 0), "read");
}

TEST_F(ReadAheadTest, WhatIsNotBegunIsLeftToTheCaller) {
  SlowStorage storage(1000);
  const auto ahead = Make(&storage, {.first_reads = 2, .most_reads = 2});
  const auto expected = ahead->Expect(job::Split::kTrain, Ids(10));
  ASSERT_TRUE(storage.WaitForReads(2));
  EXPECT_EQ(Take(*ahead, 5), "none");
  storage.Open();
  for (const int64_t id : {0, 1}) EXPECT_EQ(Take(*ahead, id), "read");
  ASSERT_TRUE(storage.WaitForReads(9));
  EXPECT_EQ(storage.reads_of(5), 0);
}

TEST_F(ReadAheadTest, WhatNobodyExpectsAnyMoreIsNotRead) {
  SlowStorage storage(1000);
  const auto ahead = Make(&storage, {.first_reads = 2, .most_reads = 2});
  auto expected = ahead->Expect(job::Split::kTrain, Ids(100));
  ASSERT_TRUE(storage.WaitForReads(2));
  expected.reset();
  EXPECT_EQ(Take(*ahead, 0), "none");
  const auto others = ahead->Expect(job::Split::kTrain, RunsOf({{200}}));
  storage.Open();
  ASSERT_TRUE(storage.WaitForReads(3));
  EXPECT_EQ(Take(*ahead, 200), "read");
  EXPECT_EQ(storage.reads(), 3);
}

// Of the next epoch, of a small dataset.
TEST_F(ReadAheadTest, ATicketThatEndsLeavesTheSampleOfAnotherOne) {
  SlowStorage storage(1);
  const auto ahead = Make(&storage);
  auto first = ahead->Expect(job::Split::kTrain, RunsOf({{7}}));
  ASSERT_TRUE(storage.WaitForReads(1));
  EXPECT_EQ(Take(*ahead, 7), "read");
  const auto second = ahead->Expect(job::Split::kTrain, RunsOf({{7}}));
  first.reset();
  ASSERT_TRUE(storage.WaitForReads(2));
  EXPECT_EQ(Take(*ahead, 7), "read");
}

// As formats do that cut a picture out of its record.
TEST_F(ReadAheadTest, CountsWhatSamplesHoldAndNotWhatTheyHave) {
  std::atomic<int> reads = 0;
  ReadAhead ahead(
      {.first_reads = 1, .most_reads = 1, .most_bytes = 4 << 20},
      [&reads](job::Split, absl::Span<const int64_t> ids, absl::Span<source::RawSample> samples) {
        ++reads;
        samples[0].bytes.resize(1 << 20);
        samples[0].bytes.resize(10);
        return std::vector<absl::Status>(ids.size());
      });
  const auto expected = ahead.Expect(job::Split::kTrain, Ids(40));
  for (int64_t id = 0; id < 40; ++id) {
    Take(ahead, id);
    EXPECT_LE(reads, id + 1 + 4 + 1);
  }
}

// Reads that take longer the more of them there are: the network is full.
TEST_F(ReadAheadTest, ReadsNoMoreAtATimeWhereThatTakesLonger) {
  base::FakeClock clock;
  std::mutex mutex;
  int underway = 0;
  int most = 0;
  ReadAhead ahead(
      {.first_reads = 1},
      [&](job::Split, absl::Span<const int64_t> ids, absl::Span<source::RawSample>) {
        std::unique_lock lock(mutex);
        most = std::max(most, ++underway);
        const int now = underway;
        lock.unlock();
        clock.Advance(now * now * std::chrono::milliseconds(10));
        std::this_thread::yield();
        lock.lock();
        --underway;
        return std::vector<absl::Status>(ids.size());
      },
      clock);
  const auto expected = ahead.Expect(job::Split::kTrain, Ids(2000));
  for (int64_t id = 0; id < 2000; ++id) Take(ahead, id);
  EXPECT_LT(most, 64);
}

// Of one thread, whose first read lasts until it is let go on.
class HeldRuns {
 public:
  explicit HeldRuns(const ReadAhead::Options& options)
      : ahead_(options, [this](job::Split, absl::Span<const int64_t> ids,
                               absl::Span<source::RawSample> samples) {
          std::unique_lock lock(mutex_);
          reads_.emplace_back(ids.begin(), ids.end());
          for (size_t i = 0; i < ids.size(); ++i) samples[i].label = static_cast<int32_t>(ids[i]);
          changed_.notify_all();
          changed_.wait_for(lock, kPatience, [&] { return open_; });
          std::vector<absl::Status> statuses(ids.size());
          if (ids.size() > 2) statuses[1] = absl::DataLossError("damaged");
          if (ids.front() == 66) throw std::runtime_error("a library's own words");
          return statuses;
        }) {}
  ReadAhead& ahead() { return ahead_; }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // Once so many were begun.
  Lists Begun(size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return reads_.size() >= count; }));
    return reads_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  Lists reads_;
  ReadAhead ahead_;
};

// Until a run is begun the caller may read some of it, and nobody reads that again.
TEST_F(ReadAheadTest, ARunIsReadAtOnceAndOneWithAHoleSampleBySample) {
  HeldRuns runs({.first_reads = 1, .most_reads = 1});
  ReadAhead& ahead = runs.ahead();
  const auto expected = ahead.Expect(
      job::Split::kTrain, RunsOf({{9, 8}, {10, 11, 12}, {1, 2, 3, 4}, {5, 6}, {66, 67}, {7}}));
  runs.Begun(1);
  for (const int64_t id : {2, 5, 6}) EXPECT_EQ(Take(ahead, id), "none");
  runs.Open();
  EXPECT_EQ(runs.Begun(7), Lists({{9, 8}, {10, 11, 12}, {1}, {3}, {4}, {66, 67}, {7}}));
  EXPECT_EQ(Take(ahead, 11), "damaged");
  for (const int64_t id : {66, 67}) {
    EXPECT_NE(Take(ahead, id).find("a library's own words"), std::string::npos);
  }
  for (const int64_t id : {1, 3, 4, 7, 8, 9, 10, 12}) {
    EXPECT_EQ(Take(ahead, id), "read");
    EXPECT_EQ(sample_.label, id);
  }
}

// Hardly anything is read for nothing.
TEST_F(ReadAheadTest, ALongRunOfWhichOneWasTakenIsReadAtOnce) {
  HeldRuns runs({.first_reads = 1, .most_reads = 1});
  std::vector<int64_t> ids;
  for (int64_t id = 0; id < 16; ++id) ids.push_back(id);
  const auto expected = runs.ahead().Expect(job::Split::kTrain, RunsOf({{100}, ids}, 1000));
  runs.Begun(1);
  EXPECT_EQ(Take(runs.ahead(), 7), "none");
  ids.erase(ids.begin() + 7);
  runs.Open();
  EXPECT_EQ(runs.Begun(2), Lists({{100}, ids}));
}

// The bytes of runs, not those that others had: small samples come before.
TEST_F(ReadAheadTest, BeginsNoMoreRunsThanThereIsMemoryFor) {
  HeldRuns runs({.first_reads = 64, .most_reads = 64, .most_bytes = 64 << 20});
  Lists lists;
  for (int64_t first = 0; first < 120; first += 2) lists.push_back({first, first + 1});
  const auto expected = runs.ahead().Expect(job::Split::kTrain, RunsOf(lists, 4 << 20));
  runs.Begun(8);  // 8 MiB each
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(runs.Begun(8).size(), 8U);
  runs.Open();
  runs.Begun(60);
}

TEST_F(ReadAheadTest, HoldsNoMoreThanIsAllowed) {
  SlowStorage storage(1);
  storage.bytes_ = 1 << 20;
  const auto ahead = Make(&storage, {.first_reads = 1, .most_reads = 1, .most_bytes = 4 << 20});
  const auto expected = ahead->Expect(job::Split::kTrain, Ids(40));
  for (int64_t id = 0; id < 40; ++id) {
    // One that it may not read yet is the caller's.
    const std::string taken = Take(*ahead, id);
    EXPECT_TRUE(taken == "read" || taken == "none") << taken;
    // What lies here, and the one that is being read.
    EXPECT_LE(storage.reads(), id + 1 + 4 + 1);
  }
}

// Pictures behind a network.
class RemoteDataset : public source::Dataset {
 public:
  explicit RemoteDataset(SlowStorage* storage) : storage_(*storage) {}
  int64_t size() const override { return 64; }
  int32_t classes() const override { return 4; }
  api::ImageShape image() const override { return {2, 2, 1}; }
  absl::Status Read(int64_t id, source::RawSample* sample) const override {
    return storage_.Read(id, sample);
  }
  bool is_remote() const override { return true; }
  std::string Describe(int64_t id) const override { return "sample " + std::to_string(id); }
  std::string fingerprint() const override { return "0123456789abcdef"; }

 private:
  SlowStorage& storage_;
};

// Samples lie beside each other, and cannot be read together.
class UnreadableRuns : public RemoteDataset {
 public:
  using RemoteDataset::RemoteDataset;
  std::vector<Run> RunsOf(const std::vector<int64_t>& ids) const override {
    return {{.ids = ids, .bytes = 1000}};
  }
  std::vector<absl::Status> ReadRun(absl::Span<const int64_t> ids,
                                    absl::Span<source::RawSample>) const override {
    return std::vector<absl::Status>(ids.size(), absl::UnavailableError("503"));
  }
};

TEST_F(ReadAheadTest, WhatCannotBeReadTogetherIsReadOneByOne) {
  SlowStorage storage(1);
  const auto producer = *SampleProducer::Create(
      api::HeteroTrainingJob(), std::make_unique<UnreadableRuns>(&storage), nullptr);
  const Ticket ticket{.id = 1, .slots = {0, 16}};
  const auto expected = producer->Expect(ticket);
  Batch batch = producer->Allocate(ticket, NewSlab);
  std::optional<BadSample> bad;
  for (int64_t i = 0; i < 16; ++i) {
    ASSERT_TRUE(producer->Produce(&batch, i, &bad).ok());
    EXPECT_FALSE(bad.has_value());
    EXPECT_EQ(batch.labels[static_cast<size_t>(i)], batch.sample_ids[static_cast<size_t>(i)] % 4);
  }
  EXPECT_EQ(storage.reads(), 16);
}

TEST_F(ReadAheadTest, OneThreadMakesABatchWhoseReadsWaitTogether) {
  SlowStorage storage(8);
  api::HeteroTrainingJob job;
  const auto producer =
      *SampleProducer::Create(job, std::make_unique<RemoteDataset>(&storage), nullptr);
  std::atomic<int> done = 0;
  TicketExecutor executor({.name = "one"}, base::Clock::Real());
  // One comes before the producer does, one behind it.
  const auto submit = [&](int64_t id, int64_t first) {
    executor.Submit(Ticket{.id = id, .slots = {first, 16}},
                    {.on_started = [](const Ticket&) {},
                     .on_done =
                         [&](const Ticket&, absl::StatusOr<std::unique_ptr<Batch>> batch) {
                           EXPECT_TRUE(batch.ok()) << batch.status();
                           ++done;
                           done.notify_all();
                         }});
  };
  submit(1, 0);
  executor.SetProducer(producer.get());
  submit(2, 16);
  for (int count = done; count < 2; count = done) done.wait(count);
  EXPECT_EQ(storage.reads(), 32);
}

}  // namespace
}  // namespace hetero::feed
