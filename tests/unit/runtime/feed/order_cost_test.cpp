#include "runtime/feed/order_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "runtime/job/permutation.h"
#include "tests/unit/runtime/feed/slow_storage.h"

namespace hetero::feed {
namespace {

constexpr int64_t kOrdered = 600;
constexpr int64_t kBatch = 50;
constexpr int64_t kBytes = 10;

// Samples of ten bytes behind each other in one shard, of which what touches is read at once.
class Neighbours : public RemoteDataset {
 public:
  explicit Neighbours(SlowStorage* storage, bool remote = true, int64_t size = kOrdered)
      : RemoteDataset(storage), remote_(remote), size_(size) {}
  int64_t size() const override { return size_; }
  bool is_remote() const override { return remote_; }
  std::vector<Run> RunsOf(const std::vector<int64_t>& ids) const override {
    std::vector<int64_t> sorted = ids;
    std::sort(sorted.begin(), sorted.end());
    std::vector<Run> runs;
    for (const int64_t id : sorted) {
      if (runs.empty() || runs.back().ids.back() + 1 != id) runs.emplace_back();
      runs.back().ids.push_back(id);
      runs.back().bytes += kBytes;
    }
    return runs;
  }

 private:
  const bool remote_;
  const int64_t size_;
};

api::HeteroTrainingJob JobWith(const api::Shuffle& shuffle) {
  api::HeteroTrainingJob job;
  job.spec.dataset.shuffle = shuffle;
  job.spec.training.seed = 7;
  return job;
}

// Counted sample by sample: one that follows another one of its batch needs no request.
double RequestsPerSample(const api::Shuffle& shuffle) {
  const job::Permutation order(/*seed=*/7, /*epoch=*/0, kOrdered, shuffle);
  int requests = 0;
  for (int64_t first = 0; first < kOrdered; first += kBatch) {
    std::vector<bool> wanted(kOrdered + 1);
    for (int64_t slot = first; slot < first + kBatch; ++slot) {
      wanted[static_cast<size_t>(order.At(slot)) + 1] = true;
    }
    for (size_t i = 1; i < wanted.size(); ++i) requests += wanted[i] && !wanted[i - 1] ? 1 : 0;
  }
  return static_cast<double>(requests) / kOrdered;
}

TEST(OrderCostTest, TheJobsOrderComesFirstAndOthersAreBesideIt) {
  SlowStorage storage(1);
  const Neighbours dataset(&storage);
  const api::Shuffle full{.mode = api::ShuffleMode::kFull};
  const api::Shuffle batches{.mode = api::ShuffleMode::kBlock, .block_size = kBatch};
  const api::Shuffle blocks{.mode = api::ShuffleMode::kBlock, .block_size = 200};
  const api::Shuffle mixed{.mode = api::ShuffleMode::kBlock, .block_size = kBatch, .window = 3};
  const auto expect = [&](const api::Shuffle& own, const std::vector<api::Shuffle>& all) {
    const std::vector<OrderCost> costs = CostsOfOrders(dataset, JobWith(own), kBatch);
    ASSERT_EQ(costs.size(), all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(costs[i].shuffle.mode, all[i].mode);
      EXPECT_EQ(costs[i].shuffle.window, all[i].window);
      EXPECT_DOUBLE_EQ(costs[i].requests_per_sample, RequestsPerSample(all[i]));
      EXPECT_DOUBLE_EQ(costs[i].bytes_per_sample, kBytes);
    }
  };
  expect(full, {full, batches});
  expect(batches, {batches, full});
  expect(blocks, {blocks, full, batches});
  expect(mixed, {mixed, full, batches});
  EXPECT_DOUBLE_EQ(RequestsPerSample(batches), 1.0 / kBatch);
  EXPECT_GT(RequestsPerSample(full), 0.85);
}

TEST(OrderCostTest, NothingIsSaidWhereTheOrderMakesNoDifference) {
  SlowStorage storage(1);
  const api::HeteroTrainingJob job = JobWith({.mode = api::ShuffleMode::kFull});
  EXPECT_TRUE(CostsOfOrders(Neighbours(&storage, /*remote=*/false), job, kBatch).empty());
  // Each in a file of its own.
  EXPECT_TRUE(CostsOfOrders(RemoteDataset(&storage), job, kBatch).empty());
}

// Of a ticket no more is read ahead than its first 4,096 samples.
TEST(OrderCostTest, TheEndOfALongTicketIsReadSampleBySample) {
  SlowStorage storage(1);
  const api::HeteroTrainingJob job = JobWith({.mode = api::ShuffleMode::kNone});
  const std::vector<OrderCost> costs =
      CostsOfOrders(Neighbours(&storage, true, 10'000), job, 5'000);
  ASSERT_EQ(costs.size(), 3);
  EXPECT_DOUBLE_EQ(costs[0].requests_per_sample, (1.0 + 5'000 - 4'096) / 5'000);
}

TEST(OrderCostTest, ATicketMayBeLargerThanTheDataset) {
  SlowStorage storage(1);
  const api::HeteroTrainingJob job = JobWith({.mode = api::ShuffleMode::kNone});
  const std::vector<OrderCost> costs = CostsOfOrders(Neighbours(&storage), job, 100'000);
  ASSERT_EQ(costs.size(), 3);
  EXPECT_DOUBLE_EQ(costs[0].requests_per_sample, 1.0 / kOrdered);
}

}  // namespace
}  // namespace hetero::feed
