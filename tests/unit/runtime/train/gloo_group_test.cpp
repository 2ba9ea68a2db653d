#include "runtime/train/process_group/gloo_group.h"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "tests/unit/runtime/train/memory_store.h"

namespace hetero::train {
namespace {

constexpr int32_t kRanks = 3;

std::unique_ptr<GlooGroup> Form(const std::shared_ptr<MemoryStore>& store, int32_t rank,
                                int64_t generation, int32_t ranks = kRanks,
                                std::stop_token stop = {}) {
  return std::make_unique<GlooGroup>(
      GlooGroup::Options{
          .rank = rank, .world_size = ranks, .generation = generation, .host = "127.0.0.1"},
      store, base::Clock::Real(), stop);
}

template <typename Body>
void OnAllRanks(Body body) {
  std::vector<std::jthread> threads;
  for (int32_t rank = 0; rank < kRanks; ++rank) threads.emplace_back([&body, rank] { body(rank); });
}

TEST(GlooGroupTest, SumsAndBroadcasts) {
  const auto store = std::make_shared<MemoryStore>();
  OnAllRanks([&](int32_t rank) {
    const auto group = Form(store, rank, 1);
    torch::Tensor values = torch::full({5}, rank + 1, torch::kInt64);
    group->SumControl(values);
    EXPECT_TRUE(values.equal(torch::full({5}, 6, torch::kInt64)));
    torch::Tensor message = torch::full({5}, rank, torch::kUInt8);
    group->BroadcastControl(message, 2);
    EXPECT_EQ(message[0].item<int>(), 2);
  });
}

TEST(GlooGroupTest, CutEndsACollectiveUnderWayAndLeavesTheNextGenerationAlone) {
  const auto store = std::make_shared<MemoryStore>();
  std::latch formed(kRanks), waiting(kRanks);
  OnAllRanks([&](int32_t rank) {
    const auto old_group = Form(store, rank, 1);
    const auto new_group = Form(store, rank, 2);
    formed.arrive_and_wait();
    torch::Tensor values = torch::ones({1 << 16});
    if (rank == 2) {
      old_group->Cut();  // this rank never joins the sum
    } else {
      EXPECT_ANY_THROW(old_group->SumControl(values));
    }
    waiting.arrive_and_wait();
    torch::Tensor one = torch::ones({1});
    new_group->SumControl(one);
    EXPECT_EQ(one.item<float>(), kRanks);
  });
}

TEST(GlooGroupTest, AStopEndsTheWaitForMissingRanks) {
  const auto store = std::make_shared<MemoryStore>();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_ANY_THROW(Form(store, 0, 1, 2, stop.get_token()));
}

}  // namespace
}  // namespace hetero::train
