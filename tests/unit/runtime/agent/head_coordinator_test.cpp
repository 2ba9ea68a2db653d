#include "runtime/agent/head_coordinator.h"

#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hetero::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The head's part is played by the test.
class HeadCoordinatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    coordinator_.Connect({.rank = 1,
                          .total_steps = 50,
                          .checkpoint = api::Checkpoint{.uri = "file:///ck", .every_steps = 10},
                          .tell = [this](const v1::ScriptWord& word) {
                            const std::lock_guard lock(mutex_);
                            words_.push_back(word);
                          }});
    coordinator_.BeginGeneration(3, over_.get_token());
  }
  void TearDown() override { coordinator_.Disconnect(); }

  // The latest word of the kind, once it is there.
  v1::ScriptWord Await(v1::ScriptWord::WordCase kind, size_t count = 1) {
    for (int i = 0; i < 2000; ++i) {
      {
        const std::lock_guard lock(mutex_);
        size_t found = 0;
        for (const v1::ScriptWord& word : words_) {
          if (word.word_case() == kind && ++found == count) return word;
        }
      }
      std::this_thread::sleep_for(milliseconds(5));
    }
    ADD_FAILURE() << "no word " << kind;
    return {};
  }
  void Decide(const std::function<void(v1::ScriptDecision&)>& fill, int64_t generation = 3) {
    v1::ScriptDecision decision;
    decision.set_generation(generation);
    fill(decision);
    coordinator_.OnDecision(decision);
  }
  void Agree(int64_t step) {
    Decide([step](auto& decision) { decision.mutable_positions_agree()->set_step(step); });
  }
  // The script begins at `step`.
  void Begin(int64_t step, bool proven = true) {
    auto begun = std::async(std::launch::async, [&] {
      return coordinator_.AgreePosition(
          {.step = step, .digest = job::StreamDigest(7, 8), .proven = proven}, never_, seconds(10));
    });
    Await(v1::ScriptWord::kPosition);
    Agree(step);
    ASSERT_TRUE(begun.get().ok());
  }
  static void Commit(v1::ScriptDecision& decision, int64_t step, bool stop) {
    decision.mutable_commit_checkpoint()->set_step(step);
    decision.mutable_commit_checkpoint()->set_stop(stop);
  }

  HeadCoordinator coordinator_{base::Clock::Real()};
  std::stop_source over_;
  const std::stop_token never_;
  std::mutex mutex_;
  std::vector<v1::ScriptWord> words_;
};

TEST(CheckpointRule, IsTheManifests) {
  struct Case {
    std::optional<int64_t> every_steps, every_seconds;
    std::vector<int64_t> due;
  };
  for (const Case& c : std::vector<Case>{{4, {}, {4, 8, 12, 14}},
                                         {4, 60, {4, 8, 12, 14}},
                                         {{}, 60, {14}},
                                         {{}, {}, {5, 10, 14}}}) {
    HeadCoordinator coordinator(base::Clock::Real());
    coordinator.Connect({.total_steps = 14,
                         .steps_per_epoch = 5,
                         .checkpoint = api::Checkpoint{.uri = "file:///ck",
                                                       .every_steps = c.every_steps,
                                                       .every_seconds = c.every_seconds},
                         .tell = [](const v1::ScriptWord&) {}});
    coordinator.BeginGeneration(1, {});
    std::vector<int64_t> due;
    for (int64_t step = 1; step <= 14; ++step) {
      if (coordinator.CheckpointDue(step, {})) due.push_back(step);
    }
    EXPECT_EQ(due, c.due);
    coordinator.Disconnect();
  }
}

TEST_F(HeadCoordinatorTest, APositionIsToldAndAgreed) {
  Begin(20);
  const v1::ScriptWord word = Await(v1::ScriptWord::kPosition);
  EXPECT_EQ(word.generation(), 3);
  EXPECT_EQ(word.position().step(), 20);
  EXPECT_EQ(word.position().digest_high(), 7u);
  EXPECT_TRUE(word.position().proven());
}

TEST_F(HeadCoordinatorTest, WhatIsOfAnotherGenerationCountsNot) {
  auto begun = std::async(std::launch::async, [&] {
    return coordinator_.AgreePosition({.step = 0}, never_, milliseconds(300));
  });
  Await(v1::ScriptWord::kPosition);
  Decide([](auto& decision) { decision.mutable_positions_agree()->set_step(0); }, 2);
  const absl::Status status = begun.get();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_NE(status.message().find("rank 1"), std::string::npos);
  EXPECT_NE(status.message().find("startupDeadlineSeconds"), std::string::npos);
}

TEST_F(HeadCoordinatorTest, TheEndOfTheGenerationEndsItsWaits) {
  auto begun = std::async(std::launch::async, [&] {
    return coordinator_.AgreePosition({.step = 0}, never_, seconds(60));
  });
  Await(v1::ScriptWord::kPosition);
  over_.request_stop();
  EXPECT_TRUE(absl::IsAborted(begun.get()));
}

TEST_F(HeadCoordinatorTest, CheckpointsAreDueByTheStepAlone) {
  Begin(0);
  EXPECT_FALSE(coordinator_.CheckpointDue(9, never_));
  EXPECT_TRUE(coordinator_.CheckpointDue(10, never_));
  EXPECT_TRUE(coordinator_.CheckpointDue(40, never_));
  EXPECT_FALSE(coordinator_.CheckpointDue(41, never_));
  EXPECT_TRUE(coordinator_.CheckpointDue(50, never_)) << "the end";
}

TEST_F(HeadCoordinatorTest, DigestsOfDueStepsAreToldAndOthersWhenTheyAreWanted) {
  Begin(0);
  for (int64_t step = 1; step <= 12; ++step) {
    coordinator_.TellDigest(step, job::StreamDigest(0, static_cast<uint64_t>(step)));
  }
  EXPECT_EQ(Await(v1::ScriptWord::kDigest).digest().step(), 10);
  Decide([](auto& decision) { decision.set_want_digest(7); });
  EXPECT_EQ(Await(v1::ScriptWord::kDigest, 2).digest().low(), 7u);
  Decide([](auto& decision) { decision.set_want_digest(13); });
  coordinator_.TellDigest(13, job::StreamDigest(0, 13));
  EXPECT_EQ(Await(v1::ScriptWord::kDigest, 3).digest().step(), 13);
}

TEST_F(HeadCoordinatorTest, TheJobsDigestComesFromTheHead) {
  Begin(20);
  EXPECT_EQ(coordinator_.JobDigestAt(20, never_, seconds(1)), job::StreamDigest(7, 8));
  coordinator_.TellDigest(21, job::StreamDigest(0, 1));
  auto digest = std::async(std::launch::async,
                           [&] { return coordinator_.JobDigestAt(21, never_, seconds(10)); });
  EXPECT_EQ(Await(v1::ScriptWord::kWantDigest).want_digest(), 21);
  EXPECT_EQ(Await(v1::ScriptWord::kDigest).digest().step(), 21);
  Decide([](auto& decision) {
    decision.mutable_job_digest()->set_step(21);
    decision.mutable_job_digest()->set_low(5);
    decision.mutable_job_digest()->set_proven(true);
  });
  EXPECT_EQ(digest.get(), job::StreamDigest(0, 5));
  EXPECT_EQ(coordinator_.JobDigestAt(22, never_, milliseconds(50)), std::nullopt);
}

TEST_F(HeadCoordinatorTest, AnUnprovenPositionHasNoDigest) {
  Begin(20, /*proven=*/false);
  EXPECT_EQ(coordinator_.JobDigestAt(20, never_, seconds(1)), std::nullopt);
}

// What a rank has said already stays as it is: it names a later step.
TEST_F(HeadCoordinatorTest, ACheckpointIsAgreedAfterTheStepsThatAreOver) {
  Begin(0);
  for (int64_t step = 0; step < 7; ++step) {
    ASSERT_TRUE(coordinator_.MayGoOn(step, never_));
    ASSERT_FALSE(coordinator_.CheckpointDue(step + 1, never_));
  }
  Decide([](auto& decision) { decision.set_prepare_checkpoint(5); });
  EXPECT_EQ(Await(v1::ScriptWord::kCheckpointAnswer).checkpoint_answer(), 8);
  ASSERT_TRUE(coordinator_.MayGoOn(7, never_));
  auto due = std::async(std::launch::async, [&] { return coordinator_.CheckpointDue(8, never_); });
  EXPECT_EQ(due.wait_for(milliseconds(100)), std::future_status::timeout) << "held until then";
  Decide([](auto& decision) { Commit(decision, 8, /*stop=*/true); });
  EXPECT_TRUE(due.get());
  EXPECT_FALSE(coordinator_.MayGoOn(8, never_));
  EXPECT_EQ(coordinator_.stop_after(), 8);
}

TEST_F(HeadCoordinatorTest, AScriptWaitsForNoStepThatIsNotPreparedAndGoesOnAfterTheCommit) {
  Begin(0);
  ASSERT_TRUE(coordinator_.MayGoOn(0, never_));
  Decide([](auto& decision) { decision.set_prepare_checkpoint(3); });
  EXPECT_EQ(Await(v1::ScriptWord::kCheckpointAnswer).checkpoint_answer(), 3);
  EXPECT_FALSE(coordinator_.CheckpointDue(1, never_));
  EXPECT_TRUE(coordinator_.MayGoOn(1, never_));
  EXPECT_TRUE(coordinator_.MayGoOn(2, never_));
  auto may = std::async(std::launch::async, [&] { return coordinator_.MayGoOn(3, never_); });
  EXPECT_EQ(may.wait_for(milliseconds(100)), std::future_status::timeout);
  Decide([](auto& decision) { Commit(decision, 4, /*stop=*/false); });
  EXPECT_TRUE(may.get());
  EXPECT_FALSE(coordinator_.CheckpointDue(3, never_));
  EXPECT_TRUE(coordinator_.CheckpointDue(4, never_)) << "another rank was further";
  EXPECT_EQ(coordinator_.stop_after(), std::nullopt);
}

TEST_F(HeadCoordinatorTest, AHeadHearsAllOfTheGenerationAgain) {
  coordinator_.TellMaster({.host = "10.0.0.7", .port = 29500});
  Begin(0);
  coordinator_.TellDigest(10, job::StreamDigest(1, 2));
  coordinator_.AskToStop();
  coordinator_.TellEnded();
  Decide([](auto& decision) { decision.set_prepare_checkpoint(12); });
  std::vector<v1::ScriptWord::WordCase> kinds;
  for (const v1::ScriptWord& word : coordinator_.AllWords()) {
    EXPECT_EQ(word.generation(), 3);
    kinds.push_back(word.word_case());
  }
  EXPECT_EQ(kinds, (std::vector{v1::ScriptWord::kMaster, v1::ScriptWord::kPosition,
                                v1::ScriptWord::kDigest, v1::ScriptWord::kCheckpointAnswer,
                                v1::ScriptWord::kWantCheckpoint, v1::ScriptWord::kEnded}));
  coordinator_.BeginGeneration(4, {});
  EXPECT_TRUE(coordinator_.AllWords().empty());
}

// Rank 0 may have begun the next generation while this rank still ends its script of the one
// before.
TEST_F(HeadCoordinatorTest, TheAddressOfRankZeroMayComeBeforeTheGeneration) {
  const auto listens = [](int32_t port) {
    return [port](auto& decision) {
      decision.mutable_master()->set_host("10.0.0.7");
      decision.mutable_master()->set_port(port);
    };
  };
  Decide(listens(1), 2);
  Decide(listens(4), 4);
  EXPECT_TRUE(absl::IsDeadlineExceeded(coordinator_.AwaitMaster(never_, {}).status()))
      << "of other generations";
  coordinator_.BeginGeneration(4, over_.get_token());
  EXPECT_EQ(coordinator_.AwaitMaster(never_, {})->port, 4);
  coordinator_.BeginGeneration(5, over_.get_token());
  auto later =
      std::async(std::launch::async, [&] { return coordinator_.AwaitMaster(never_, seconds(10)); });
  Decide(listens(5), 5);
  const absl::StatusOr<MasterAddress> found = later.get();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->host, "10.0.0.7");
  EXPECT_EQ(found->port, 5);
  over_.request_stop();
  coordinator_.BeginGeneration(6, over_.get_token());
  EXPECT_TRUE(absl::IsAborted(coordinator_.AwaitMaster(never_, seconds(10)).status()));
}

TEST_F(HeadCoordinatorTest, AllHaveEndedWhenTheHeadSaysSo) {
  Begin(0);
  coordinator_.TellEnded();
  Await(v1::ScriptWord::kEnded);
  EXPECT_FALSE(coordinator_.all_ended());
  Decide([](auto& decision) { decision.set_all_ended(true); }, 2);
  EXPECT_FALSE(coordinator_.all_ended());
  Decide([](auto& decision) { decision.set_all_ended(true); });
  EXPECT_TRUE(coordinator_.all_ended());
}

}  // namespace
}  // namespace hetero::agent
