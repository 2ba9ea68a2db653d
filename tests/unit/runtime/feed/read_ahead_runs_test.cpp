// Samples that are read ahead together.
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/feed/read_ahead.h"
#include "runtime/feed/sample_producer.h"
#include "tests/unit/runtime/feed/slow_storage.h"

namespace hetero::feed {
namespace {

using Lists = std::vector<std::vector<int64_t>>;

Runs RunsOf(const Lists& lists, int64_t bytes = 0) {
  Runs runs;
  for (const std::vector<int64_t>& ids : lists) runs.push_back({.ids = ids, .bytes = bytes});
  return runs;
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
  // Within the time in which others would have begun long ago.
  bool BeginsMoreThan(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(100),
                             [&] { return reads_.size() > count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  Lists reads_;
  ReadAhead ahead_;
};

// Of the end of one epoch and the beginning of the next. The second was read sample by sample, by
// those who decode.
TEST(ReadAheadRunsTest, TicketsThatWantTheSameSamplesAreBothReadAhead) {
  HeldRuns runs({.first_reads = 1, .most_reads = 1});
  ReadAhead& ahead = runs.ahead();
  const auto first = ahead.Expect(job::Split::kTrain, RunsOf({{1, 2, 3}}));
  auto second = ahead.Expect(job::Split::kTrain, RunsOf({{3, 2, 4}}));
  auto dropped = ahead.Expect(job::Split::kTrain, RunsOf({{2}, {5}}));
  runs.Begun(1);
  dropped.reset();  // its own alone
  runs.Open();
  EXPECT_EQ(runs.Begun(2), Lists({{1, 2, 3}, {3, 2, 4}}));
  source::RawSample sample;
  for (const int64_t id : {1, 2, 3, 3, 2, 4}) {
    EXPECT_NE(TakeFrom(ahead, id, &sample), "none") << id;
    EXPECT_EQ(sample.label, id);
  }
  EXPECT_EQ(TakeFrom(ahead, 2, &sample), "none");
  EXPECT_EQ(TakeFrom(ahead, 5, &sample), "none");
}

// Until a run is begun the caller may read some of it, and nobody reads that again.
TEST(ReadAheadRunsTest, ARunIsReadAtOnceAndOneWithAHoleSampleBySample) {
  HeldRuns runs({.first_reads = 1, .most_reads = 1});
  source::RawSample sample;
  ReadAhead& ahead = runs.ahead();
  const auto expected = ahead.Expect(
      job::Split::kTrain, RunsOf({{9, 8}, {10, 11, 12}, {1, 2, 3, 4}, {5, 6}, {66, 67}, {7}}));
  runs.Begun(1);
  for (const int64_t id : {2, 5, 6}) EXPECT_EQ(TakeFrom(ahead, id, &sample), "none");
  runs.Open();
  EXPECT_EQ(runs.Begun(7), Lists({{9, 8}, {10, 11, 12}, {1}, {3}, {4}, {66, 67}, {7}}));
  EXPECT_EQ(TakeFrom(ahead, 11, &sample), "damaged");
  for (const int64_t id : {66, 67}) {
    EXPECT_NE(TakeFrom(ahead, id, &sample).find("a library's own words"), std::string::npos);
  }
  for (const int64_t id : {1, 3, 4, 7, 8, 9, 10, 12}) {
    EXPECT_EQ(TakeFrom(ahead, id, &sample), "read");
    EXPECT_EQ(sample.label, id);
  }
}

// Hardly anything is read for nothing.
TEST(ReadAheadRunsTest, ALongRunOfWhichOneWasTakenIsReadAtOnce) {
  HeldRuns runs({.first_reads = 1, .most_reads = 1});
  source::RawSample sample;
  std::vector<int64_t> ids;
  for (int64_t id = 0; id < 16; ++id) ids.push_back(id);
  const auto expected = runs.ahead().Expect(job::Split::kTrain, RunsOf({{100}, ids}, 1000));
  runs.Begun(1);
  EXPECT_EQ(TakeFrom(runs.ahead(), 7, &sample), "none");
  ids.erase(ids.begin() + 7);
  runs.Open();
  EXPECT_EQ(runs.Begun(2), Lists({{100}, ids}));
}

// The bytes of runs, not those that others had: twice 4 MiB of 64, though there are threads for
// all.
TEST(ReadAheadRunsTest, BeginsNoMoreRunsThanThereIsMemoryFor) {
  constexpr size_t kRuns = 60, kFit = 8;
  HeldRuns runs({.first_reads = 64, .most_reads = 64, .most_bytes = 64 << 20});
  Lists lists;
  for (int64_t first = 0; first < int64_t{2 * kRuns}; first += 2) {
    lists.push_back({first, first + 1});
  }
  const auto expected = runs.ahead().Expect(job::Split::kTrain, RunsOf(lists, 4 << 20));
  runs.Begun(kFit);
  EXPECT_FALSE(runs.BeginsMoreThan(kFit));
  runs.Open();
  runs.Begun(kRuns);
}

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

TEST(ReadAheadRunsTest, WhatCannotBeReadTogetherIsReadOneByOne) {
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

}  // namespace
}  // namespace hetero::feed
