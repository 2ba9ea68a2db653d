#include "runtime/agent/batch_arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "stream_fixture.h"

namespace hetero::agent {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kImages = 5000;

std::shared_ptr<BatchArena> Arena(int64_t may_wait, int64_t may_hold) {
  return *BatchArena::Create(
      {.slot_bytes = 6000, .may_wait = may_wait, .may_hold = may_hold, .image_bytes = kImages});
}

TEST(BatchArenaTest, WhatWaitsNeverTakesTheLastSlotsFromTheScript) {
  const auto arena = Arena(3, 2);
  EXPECT_EQ(arena->slots(), 5);
  EXPECT_EQ(arena->slot_bytes(), 8192);
  std::vector<feed::Slab> waiting, held;
  for (int i = 0; i < 10; ++i) waiting.push_back(arena->Allocate(kImages));
  EXPECT_EQ(arena->waiting(), 3);
  EXPECT_FALSE(arena->SlotOf(waiting[3]).has_value());
  // Whatever lies where, a script that holds less than it may gets the next batch.
  for (size_t i = 9; i >= 8; --i) {
    EXPECT_FALSE(arena->full());
    std::memset(waiting[i].data(), static_cast<int>(i), kImages);
    held.push_back(arena->Give(std::move(waiting[i])));
    ASSERT_TRUE(arena->SlotOf(held.back()).has_value());
    EXPECT_EQ(held.back().data()[kImages - 1], i);
  }
  EXPECT_TRUE(arena->full());
  EXPECT_EQ(arena->copies(), 2);
  held.pop_back();
  EXPECT_FALSE(arena->full());
  // One that waits in a slot is not copied.
  const uint8_t* place = waiting[0].data();
  held.push_back(arena->Give(std::move(waiting[0])));
  EXPECT_EQ(held.back().data(), place);
  EXPECT_EQ(arena->copies(), 2);
  EXPECT_EQ(arena->waiting(), 2);
  waiting.clear();
  held.clear();
  EXPECT_EQ(arena->waiting(), 0);
  EXPECT_EQ(arena->held(), 0);
}

TEST(BatchArenaTest, WhatDoesNotFitLiesOnTheHeap) {
  const auto arena = Arena(3, 2);
  EXPECT_FALSE(arena->SlotOf(arena->Allocate(kImages + 1)).has_value());
  EXPECT_TRUE(arena->SlotOf(arena->Allocate(kImages)).has_value());
  const feed::Slab none = arena->Give(arena->Allocate(0));  // a rank without a share
  EXPECT_TRUE(arena->SlotOf(none).has_value());
  EXPECT_EQ(none.size(), 0);
}

TEST(BatchArenaTest, ASlabOutlivesItsArena) {
  auto arena = Arena(1, 1);
  feed::Slab slab = arena->Allocate(kImages);
  arena.reset();
  std::memset(slab.data(), 1, kImages);
}

// The window's budget and the slots fit together.
class HoldingTest : public StreamFixture {};

TEST_F(HoldingTest, HoldingAllButOneSlotKeepsTheStreamFlowing) {
  for (const int64_t budget : {int64_t{1}, 3 * 16 * kSampleBytes, 20 * 16 * kSampleBytes}) {
    Listen({"training.epochs=5"}, 0, budget);
    const auto script = Connect();
    const int64_t may_hold = script->Hello()["may_hold"];
    script->Begin();
    std::vector<json> held;
    for (int64_t i = 0; i + 1 < may_hold; ++i) held.push_back(script->Next());
    for (int64_t step = may_hold - 1; step < 35; ++step) {
      const json batch = script->Next();
      ASSERT_EQ(batch["step"], step) << batch;
      script->Free(batch);
    }
    // What is held is still what it was.
    job::StreamDigest seen;
    for (const json& batch : held) script->AddToDigest(batch, 5, &seen);
    EXPECT_EQ(seen.ToHex(), Expected(0, may_hold - 1).ToHex());
  }
}

TEST_F(HoldingTest, WhoHoldsAllWaitsUntilOneIsFreedInAnyOrder) {
  Listen({}, 0, 1);
  const auto script = Connect();
  EXPECT_EQ(script->Hello()["may_hold"], 4);
  script->Begin();
  std::vector<json> held;
  for (int i = 0; i < 4; ++i) held.push_back(script->Next());
  for (const int freed : {2, 0, 3, 1}) {
    script->Send({{"type", "next"}});
    EXPECT_FALSE(script->HasAnswer(milliseconds(30)));
    script->Free(held[static_cast<size_t>(freed)]);
    const json batch = script->Receive();
    EXPECT_EQ(batch["type"], "batch") << batch;
  }
}

TEST_F(HoldingTest, WhoHoldsAllForTooLongIsToldWhatHeHolds) {
  options_.held_warning = milliseconds(20);
  options_.held_deadline = milliseconds(100);
  Listen({}, 0, 1);
  const auto script = Start();
  json first = script->Next();
  for (int i = 0; i < 3; ++i) script->Next();
  ::testing::internal::CaptureStderr();
  const json answer = script->Next();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(answer["kind"], "timeout");
  EXPECT_NE(answer["message"].get<std::string>().find("holds all 4 batches"), std::string::npos)
      << answer;
  for (const char* held : {"step 0", "step 1", "step 2", "step 3"}) {
    EXPECT_NE(answer["message"].get<std::string>().find(held), std::string::npos) << answer;
    EXPECT_NE(log.find(held), std::string::npos) << log;
  }
  // It may let go and go on: nothing was lost.
  script->Free(first);
  EXPECT_EQ(script->Next()["step"], 4);
}

TEST_F(HoldingTest, WhatAScriptHoldsIsItsOwnUntilTheNextOneComes) {
  Listen({}, 0, 1);
  auto script = Start();
  const json held = script->Next();
  script->Ask({{"type", "bye"}});
  ASSERT_TRUE(Eventually([&] { return !server_->standing().connected; }));
  job::StreamDigest seen;
  script->AddToDigest(held, 5, &seen);
  EXPECT_EQ(seen.ToHex(), Expected(0, 1).ToHex());
  for (int generation = 2; generation < 12; ++generation) {
    server_->Begin(generation, generation - 1);  // beside one that is still there, or has gone
    const auto next = Start();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(next->Next()["step"], i);
    if (generation % 2 == 0) next->Ask({{"type", "bye"}});
  }
}

// What was sent over a network lies where the script sees it; what a worker put into memory that it
// shares has to be copied there.
TEST_F(HoldingTest, BatchesFromEitherKindOfWorkerAreTheSame) {
  for (const std::string& worker : {std::string("127.0.0.1:0"), "unix:" + (folder_ / "w")}) {
    Listen({"training.batchSizePerWorker=90"}, 0, 1 << 20, worker);  // 17 kB each
    const auto script = Start();
    job::StreamDigest seen;
    for (int64_t step = 0; step < 4; ++step) {
      const json batch = script->Next();
      script->AddToDigest(batch, 5, &seen);
      script->Free(batch);
    }
    EXPECT_EQ(seen.ToHex(), Expected(0, 4).ToHex()) << worker;
  }
}

TEST_F(HoldingTest, ABatchIsTheScriptsAloneUntilItIsFreed) {
  Listen({"training.epochs=5"}, 0, 1);
  const auto script = Start();
  const json held = script->Next();
  const size_t bytes = held["fields"][0]["bytes"];
  std::memset(script->Field(held, 0), 0xab, bytes);
  for (int64_t step = 1; step < 35; ++step) {
    const json batch = script->Next();
    EXPECT_NE(batch["slot"], held["slot"]);
    script->Free(batch);
  }
  for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(script->Field(held, 0)[i], 0xab);
  EXPECT_EQ(script->State()["state"]["digest"], Expected(0, 35).ToHex());
}

}  // namespace
}  // namespace hetero::agent
