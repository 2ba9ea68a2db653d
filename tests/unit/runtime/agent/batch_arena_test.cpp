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
class HoldingTest : public StreamFixture {
 protected:
  static constexpr char kLargeBatch[] = "training.batchSizePerWorker=90";  // worth sharing
  static constexpr char kManySamples[] = "dataset.samples=5400";           // 60 such batches
  static constexpr char kNoGpu[] = "roles.gpu.gpusPerReplica=0";
  static constexpr int64_t kLargeBatchBytes = 90 * kSampleBytes;
  // The address of another worker that puts batches into memory of both.
  std::string Sharing() { return "unix:" + (folder_ / ("w" + std::to_string(++workers_))); }
  // Three batches, in memory of a worker, which may hear of it later than of the first tickets.
  static std::vector<json> HoldInFiles(ScriptClient& script) {
    std::vector<json> held;
    for (int i = 0; i < 40 && held.size() < 3; ++i) {
      const json batch = script.Next();
      if (batch["fields"][0].contains("file")) {
        held.push_back(batch);
      } else {
        script.Free(batch);
      }
    }
    EXPECT_EQ(held.size(), 3);
    return held;
  }
  static void ReadOn(feed::BatchStream& stream) {
    for (int i = 0; i < 13; ++i) EXPECT_TRUE(stream.Next({}).ok());
  }
  void ExpectHeld(const ScriptClient& script, const std::vector<json>& held) const {
    for (const json& batch : held) {
      job::StreamDigest seen;
      script.AddToDigest(batch, 5, &seen);
      const int64_t step = batch["step"];
      EXPECT_EQ(seen.ToHex(), Expected(step, step + 1).ToHex()) << batch;
    }
  }

 private:
  int workers_ = 0;
};

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

// Where a batch lies: what was sent over a network in a slot, what a worker shares where it is, but
// all in one file where a GPU copies from it.
TEST_F(HoldingTest, BatchesOfEveryWorkerAreTheSame) {
  struct Case {
    std::string worker;
    std::string gpus;
    bool in_place;
  };
  for (const Case& test :
       {Case{"127.0.0.1:0", "0", false}, Case{Sharing(), "0", true}, Case{Sharing(), "1", false}}) {
    Listen({kLargeBatch, kManySamples, "roles.gpu.gpusPerReplica=" + test.gpus}, 0,
           8 * kLargeBatchBytes, test.worker);
    const auto script = Start();
    job::StreamDigest seen;
    int in_place = 0;
    for (int64_t step = 0; step < 60; ++step) {
      const json batch = script->Next();
      in_place += batch["fields"][0].contains("file") ? 1 : 0;
      script->AddToDigest(batch, 5, &seen);
      script->Free(batch);
    }
    EXPECT_EQ(in_place > 0, test.in_place);             // a worker may hear of the file later
    EXPECT_EQ(script->files(), test.in_place ? 1 : 0);  // passed once
    EXPECT_EQ(seen.ToHex(), Expected(0, 60).ToHex()) << test.worker;
  }
}

TEST_F(HoldingTest, AScriptThatWantsOneFileGetsAllInIt) {
  Listen({kLargeBatch, kNoGpu, kManySamples}, 0, 8 * kLargeBatchBytes, Sharing());
  const auto script = Connect();
  script->Hello(/*one_file=*/true);
  script->Begin();
  job::StreamDigest seen;
  for (int64_t step = 0; step < 60; ++step) {
    const json batch = script->Next();
    ASSERT_FALSE(batch["fields"][0].contains("file"));
    script->AddToDigest(batch, 5, &seen);
    script->Free(batch);
  }
  EXPECT_EQ(seen.ToHex(), Expected(0, 60).ToHex());
}

// The memory that a pass shares with its workers would stay as long as one batch of it is kept.
TEST_F(HoldingTest, ValidationBatchesLieInSlots) {
  Listen({kLargeBatch, kNoGpu, "dataset.validation.samples=5400"}, 0, 8 * kLargeBatchBytes,
         Sharing());
  const auto script = Start();
  script->Ask({{"type", "validation"}});
  int batches = 0;
  for (json batch; (batch = script->Ask({{"type", "next"}, {"validation", true}}))["type"] != "end";
       ++batches) {
    ASSERT_FALSE(batch["fields"][0].contains("file"));
    script->Free(batch);
  }
  EXPECT_EQ(batches, 60);
}

TEST_F(HoldingTest, WhoHasReadAValidationPassCannotOpenAnotherStream) {
  Listen();
  auto script = Start();
  script.reset();
  server_->Begin(2, 1);
  script = Connect();
  script->Hello();
  script->Ask({{"type", "validation"}});
  const json held = script->Ask({{"type", "next"}, {"validation", true}});
  script->Ask({{"type", "bye"}});
  const json refused = Connect()->Hello();  // the batch may be looked at still
  EXPECT_EQ(refused["type"], "error") << refused;
  EXPECT_TRUE(server_->standing().asked);
}

TEST_F(HoldingTest, WhatLiesInMemoryOfAWorkerStaysAsLongAsTheScriptHoldsIt) {
  Listen({kLargeBatch, kNoGpu, kManySamples}, 0, 8 * kLargeBatchBytes, Sharing());
  const auto script = Start();
  const std::vector<json> held = HoldInFiles(*script);
  for (int i = 0; i < 20; ++i) script->Free(script->Next());
  ExpectHeld(*script, held);
}

TEST_F(HoldingTest, AFileInWhichNoBatchWillComeIsForgottenOnce) {
  Listen({kLargeBatch, kNoGpu, kManySamples, "training.epochs=20"}, 0, 8 * kLargeBatchBytes,
         Sharing());
  const auto script = Start();
  const std::vector<json> held = HoldInFiles(*script);
  const json number = held.front()["fields"][0]["file"];
  feed_->DialAgain();  // the next comes with memory of its own
  int forgotten = 0;
  const auto look = [&] {
    const json batch = script->Next();
    script->Free(batch);
    for (const json& file : batch.value("forgotten", json::array())) forgotten += file == number;
    return forgotten > 0;
  };
  for (int i = 0; i < 20; ++i) look();
  EXPECT_EQ(forgotten, 0) << "batches are held there";
  ExpectHeld(*script, held);
  for (const json& batch : held) script->Free(batch);
  ASSERT_TRUE(Eventually(look));
  for (int i = 0; i < 10; ++i) look();
  EXPECT_EQ(forgotten, 1);
}

// The agent of a script that has closed its stream ends, and batches are still coming.
TEST_F(HoldingTest, WhatAScriptHoldsStaysWhenTheAgentEnds) {
  Listen({kManySamples}, 0, 1);
  const auto script = Start();
  std::vector<json> held;
  for (int i = 0; i < 3; ++i) held.push_back(script->Next());
  script->Ask({{"type", "bye"}});
  feed_->CloseTraining();  // so that slots which become free now are the next to be written to
  server_.reset();
  ReadOn(feed_->TrainingFrom(3));
  ExpectHeld(*script, held);
}

TEST_F(HoldingTest, WhatAScriptHoldsInMemoryOfAWorkerStaysWhenTheAgentEnds) {
  Listen({kLargeBatch, kNoGpu, kManySamples}, 0, 4 * kLargeBatchBytes, Sharing());
  const auto script = Start();
  const std::vector<json> held = HoldInFiles(*script);
  script->Ask({{"type", "bye"}});
  server_.reset();
  ReadOn(feed_->training());
  ExpectHeld(*script, held);
}

// It is no process of the agent's, which cannot know whether it is there still.
TEST_F(HoldingTest, WhatAnAttachedScriptHoldsStaysWhenAGenerationBegins) {
  options_.attached = true;
  Listen({kLargeBatch, kNoGpu, kManySamples}, 0, 4 * kLargeBatchBytes, Sharing());
  const auto script = Start();
  const std::vector<json> held = HoldInFiles(*script);
  script->Ask({{"type", "bye"}});
  ASSERT_TRUE(Eventually([&] { return !server_->standing().connected; }));
  server_->Begin(2, 1);
  ReadOn(feed_->training());
  ExpectHeld(*script, held);
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
