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
#include "tests/unit/runtime/feed/slow_storage.h"

namespace hetero::feed {
namespace {

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
  std::string Take(ReadAhead& ahead, int64_t id) { return TakeFrom(ahead, id, &sample_); }

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
  const auto expected = ahead->Expect(job::Split::kTrain, {{.ids = {7}}});
  ASSERT_TRUE(storage.WaitForReads(1));
  EXPECT_EQ(ahead->Take(job::Split::kValidation, 7, &sample_), std::nullopt);
  EXPECT_EQ(Take(*ahead, 7), "read");
  EXPECT_EQ(Take(*ahead, 7), "none");
}

TEST_F(ReadAheadTest, ASampleThatTwoTicketsExpectIsReadForEach) {
  SlowStorage storage(1);
  const auto ahead = Make(&storage);
  const auto first = ahead->Expect(job::Split::kTrain, {{.ids = {7}}});
  const auto second = ahead->Expect(job::Split::kTrain, {{.ids = {7}}, {.ids = {8}}});
  ASSERT_TRUE(storage.WaitForReads(3));
  EXPECT_EQ(Take(*ahead, 8), "read");
  EXPECT_EQ(Take(*ahead, 7), "read");
  EXPECT_EQ(Take(*ahead, 7), "read");
  EXPECT_EQ(Take(*ahead, 7), "none");
  EXPECT_EQ(storage.reads(), 3);
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
  const auto others = ahead->Expect(job::Split::kTrain, {{.ids = {200}}});
  storage.Open();
  ASSERT_TRUE(storage.WaitForReads(3));
  EXPECT_EQ(Take(*ahead, 200), "read");
  EXPECT_EQ(storage.reads(), 3);
}

// Of the next epoch, of a small dataset.
TEST_F(ReadAheadTest, ATicketThatEndsLeavesTheSampleOfAnotherOne) {
  SlowStorage storage(1);
  const auto ahead = Make(&storage);
  auto first = ahead->Expect(job::Split::kTrain, {{.ids = {7}}});
  ASSERT_TRUE(storage.WaitForReads(1));
  EXPECT_EQ(Take(*ahead, 7), "read");
  const auto second = ahead->Expect(job::Split::kTrain, {{.ids = {7}}});
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

// A CPU worker's thread, and one of a trainer, which must not wait for a network while it may hold
// what others want.
TEST_F(ReadAheadTest, OneThreadMakesABatchWhoseReadsWaitTogether) {
  for (const bool low_priority : {false, true}) {
    SlowStorage storage(8);
    storage.bad_ = 3;
    api::HeteroTrainingJob job;
    const auto producer =
        *SampleProducer::Create(job, std::make_unique<RemoteDataset>(&storage), nullptr);
    std::atomic<int> done = 0;
    TicketExecutor executor({.name = "one", .low_priority = low_priority}, base::Clock::Real());
    // One comes before the producer does, one behind it.
    const auto submit = [&](int64_t id, int64_t first) {
      executor.Submit(Ticket{.id = id, .slots = {first, 16}},
                      {.on_started = [](const Ticket&) {},
                       .on_done =
                           [&](const Ticket&, absl::StatusOr<std::unique_ptr<Batch>> batch) {
                             EXPECT_TRUE(batch.ok()) << batch.status();
                             for (size_t i = 0; i < 16; ++i) {
                               EXPECT_EQ((*batch)->labels[i], (*batch)->sample_ids[i] % 4);
                             }
                             ++done;
                             done.notify_all();
                           }});
    };
    submit(1, 0);
    executor.SetProducer(producer.get());
    submit(2, 16);
    for (int count = done; count < 2; count = done) done.wait(count);
    const int replaced = storage.reads_of(storage.bad_);
    EXPECT_LE(storage.reads(), 32 + replaced);
    // What takes the place of a bad sample nobody could know of.
    EXPECT_LE(storage.idle_reads(), replaced);
  }
}

}  // namespace
}  // namespace hetero::feed
