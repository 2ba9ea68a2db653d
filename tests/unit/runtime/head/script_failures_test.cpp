#include "runtime/head/script_failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/unit/runtime/head/script_job.h"

namespace hetero::head {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr base::Duration kGrace = seconds(1);

class ScriptFailuresTest : public ::testing::Test {
 protected:
  ScriptFailuresTest() {
    record_.job = MakeScriptJob();
    record_.ranks = {{"gpu", 0, 0}, {"gpu", 0, 1}, {"big", 0, 0}};
    record_.generation = 1;
  }

  static v1::ScriptFailure Failure(int64_t generation, int32_t rank, int64_t step,
                                   const std::string& last_line, int32_t signal = 0) {
    v1::ScriptFailure failure;
    failure.set_generation(generation);
    failure.set_rank(rank);
    failure.set_step(step);
    failure.set_exit_code(signal == 0 ? 1 : 0);
    failure.set_signal(signal);
    failure.set_message("the script of rank " + std::to_string(rank) +
                        " ended with exit code 1\nTraceback (most recent call last):\n" +
                        last_line + "\n");
    return failure;
  }
  // A whole generation that ends with this failure, and the next one.
  std::optional<ScriptFailures::End> Fail(int32_t rank, int64_t step, const std::string& line,
                                          int32_t signal = 0) {
    failures_.Take("gpu-0", Failure(record_.generation, rank, step, line, signal), now_.steady);
    const auto end = failures_.Judge(/*closing=*/true, now_);
    ++record_.generation;
    return end;
  }

  Moment now_{base::Instant(std::chrono::hours(1)), base::WallTime(seconds(1'700'000'000))};
  JobRecord record_;
  ScriptFailures failures_{kGrace, record_};
};

TEST_F(ScriptFailuresTest, FailuresOfTwoRanksInOneGenerationCountOnce) {
  failures_.Take("gpu-0.0", Failure(1, 0, 5, "ConnectionResetError"), now_.steady);
  failures_.Take("gpu-0.1", Failure(1, 1, 5, "KeyError: 'image'"), now_.steady);
  EXPECT_FALSE(failures_.Judge(false, now_));
  EXPECT_EQ(record_.script_restarts, 0) << "the third may have something to say";
  now_.steady += kGrace;
  EXPECT_FALSE(failures_.Judge(false, now_));
  EXPECT_EQ(record_.script_restarts, 1);
  ASSERT_THAT(record_.faults, SizeIs(1));
  EXPECT_THAT(record_.faults[0].what, HasSubstr("KeyError: 'image'")) << "the other lost it";
  // Heartbeats say it again until the next generation opens.
  failures_.Take("gpu-0.1", Failure(1, 1, 5, "KeyError: 'image'"), now_.steady);
  now_.steady += kGrace;
  EXPECT_FALSE(failures_.Judge(true, now_));
  EXPECT_EQ(record_.script_restarts, 1);
  EXPECT_THAT(record_.faults, SizeIs(1));
}

// Its process may be gone after those of the others, whose connections it has ended.
TEST_F(ScriptFailuresTest, WhoLostAnotherIsNotTheFirstToFail) {
  for (int generation = 1; generation <= 2; ++generation) {
    failures_.Take("gpu-0.0", Failure(generation, 0, 5, "ConnectionError: closed"), now_.steady);
    failures_.Take("gpu-0.1", Failure(generation, 1, 5, "KeyError: 'image'"), now_.steady);
    EXPECT_FALSE(failures_.Judge(/*closing=*/true, now_));
    EXPECT_THAT(record_.faults.back().what, HasSubstr("KeyError"));
    ++record_.generation;
  }
  failures_.Take("gpu-0.0", Failure(3, 0, 5, "ConnectionError: closed"), now_.steady);
  failures_.Take("gpu-0.1", Failure(3, 1, 5, "KeyError: 'image'"), now_.steady);
  const auto end = failures_.Judge(/*closing=*/true, now_);
  ASSERT_TRUE(end);
  EXPECT_THAT(end->message, HasSubstr("KeyError"));
}

// What aborts a script that has lost another is no crash of its own.
TEST_F(ScriptFailuresTest, AnAbortIsNotTakenForTheCause) {
  failures_.Take("gpu-0.1", Failure(1, 1, 5, "KeyError: 'image'"), now_.steady);
  failures_.Take("gpu-0.0", Failure(1, 0, 5, "watchdog", SIGABRT), now_.steady);
  EXPECT_FALSE(failures_.Judge(/*closing=*/true, now_));
  EXPECT_THAT(record_.faults[0].what, HasSubstr("KeyError"));
}

TEST_F(ScriptFailuresTest, DoesNotWaitWhenAllRanksHaveFailed) {
  for (int32_t rank = 0; rank < 3; ++rank) {
    EXPECT_FALSE(failures_.Judge(false, now_));
    EXPECT_EQ(record_.script_restarts, 0);
    failures_.Take("gpu-0", Failure(1, rank, 5, "no"), now_.steady);
  }
  failures_.Judge(false, now_);
  EXPECT_EQ(record_.script_restarts, 1);
}

TEST_F(ScriptFailuresTest, MoreThanMaxRestartsEndTheJob) {
  EXPECT_FALSE(Fail(0, 5, "a"));
  EXPECT_FALSE(Fail(0, 6, "b"));
  const auto end = Fail(0, 7, "c");
  ASSERT_TRUE(end);
  EXPECT_EQ(end->member, "gpu-0");
  EXPECT_THAT(end->message,
              AllOf(StartsWith("runPolicy.maxRestarts allows 2 restarts: the script of rank 0"),
                    HasSubstr("Traceback (most recent call last):\nc")));
  EXPECT_EQ(record_.script_restarts, 2) << "the last failure is followed by none";
}

TEST_F(ScriptFailuresTest, WhatEarlierAttemptsUsedIsGone) {
  record_.past.script_restarts = 1;
  EXPECT_FALSE(Fail(0, 5, "a"));
  EXPECT_TRUE(Fail(0, 6, "b"));
}

TEST_F(ScriptFailuresTest, TheSameLastLineAtTheSameStepThreeTimesEndsTheJob) {
  record_.job.spec.run_policy.max_restarts = 100;
  EXPECT_FALSE(Fail(1, 5, "KeyError: 'image'"));
  EXPECT_FALSE(Fail(1, 6, "KeyError: 'image'")) << "of another step";
  EXPECT_FALSE(Fail(1, 5, "KeyError: 'label'")) << "another line";
  EXPECT_FALSE(Fail(0, 5, "KeyError: 'image'"));
  const auto end = Fail(1, 5, "KeyError: 'image'");
  ASSERT_TRUE(end);
  EXPECT_THAT(end->message, AllOf(HasSubstr("three times at step 5"), HasSubstr("rank 1"),
                                  HasSubstr("KeyError: 'image'")));
}

TEST_F(ScriptFailuresTest, TheOneThatFailedAlikeIsNamedNotThosePeersThatLostTheirConnection) {
  record_.job.spec.run_policy.max_restarts = 100;
  Fail(1, 5, "KeyError: 'image'");
  Fail(1, 5, "KeyError: 'image'");
  failures_.Take("gpu-0.0", Failure(3, 0, 5, "RuntimeError: 127.0.0.1:43211 is gone"), now_.steady);
  failures_.Take("gpu-0.1", Failure(3, 1, 5, "KeyError: 'image'"), now_.steady);
  const auto end = failures_.Judge(true, now_);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->member, "gpu-0.1");
  EXPECT_THAT(end->message, HasSubstr("KeyError"));
}

TEST_F(ScriptFailuresTest, TwoRanksThatFailAlikeInOneGenerationAreOneFailure) {
  record_.job.spec.run_policy.max_restarts = 100;
  for (int32_t rank = 0; rank < 3; ++rank) {
    failures_.Take("gpu-0", Failure(1, rank, 5, "no such file"), now_.steady);
  }
  EXPECT_FALSE(failures_.Judge(true, now_));
}

TEST_F(ScriptFailuresTest, AKillFromOutsideMayComeAtTheSameStepByChance) {
  record_.job.spec.run_policy.max_restarts = 100;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Fail(0, 0, "", SIGKILL));
  EXPECT_EQ(record_.script_restarts, 5);
  EXPECT_FALSE(Fail(0, 3, "step 3", SIGSEGV));
  EXPECT_FALSE(Fail(0, 3, "step 3", SIGSEGV));
  EXPECT_TRUE(Fail(0, 3, "step 3", SIGSEGV));
}

TEST_F(ScriptFailuresTest, TheOneThatWasKilledIsTheCause) {
  failures_.Take("gpu-0.0", Failure(1, 0, 5, "Connection closed by peer"), now_.steady);
  failures_.Take("gpu-0.1", Failure(1, 1, 5, "step 5", SIGKILL), now_.steady);
  failures_.Judge(true, now_);
  ASSERT_THAT(record_.faults, SizeIs(1));
  EXPECT_EQ(record_.faults[0].member, "gpu-0.1");
}

// A pod that dies takes the connections of the other ranks' scripts with it, and costs a restart by
// itself.
TEST_F(ScriptFailuresTest, NothingIsCountedWhereTheProcessOfAnotherRankIsGone) {
  const auto put = [this](int32_t index, int32_t rank) -> MemberRecord& {
    MemberRecord& member = record_.members[{"gpu", 0, index}];
    member.name = "gpu-0." + std::to_string(index);
    member.rank = rank;
    member.hello.mutable_identity()->set_incarnation(1);
    member.stream = StreamId(rank + 1);
    return member;
  };
  put(0, 0);
  MemberRecord& other = put(1, 1);
  Fail(0, 5, "ConnectionError");
  EXPECT_EQ(record_.script_restarts, 1) << "both are there: it failed by itself";

  other.stream.reset();
  EXPECT_FALSE(Fail(0, 5, "ConnectionError"));
  EXPECT_EQ(record_.script_restarts, 1);
  EXPECT_THAT(record_.faults, SizeIs(1)) << "the loss of the other is a fault of its own";

  other.stream = StreamId(9);
  failures_.Take("gpu-0.0", Failure(record_.generation, 0, 5, "ConnectionError"), now_.steady);
  other.hello.mutable_identity()->set_incarnation(2);
  EXPECT_FALSE(failures_.Judge(true, now_));
  EXPECT_EQ(record_.script_restarts, 1) << "the one that is there took its place";
  failures_.Take("gpu-0.0", Failure(record_.generation, 0, 5, "ConnectionError"), now_.steady);
  EXPECT_FALSE(failures_.Judge(true, now_));
  EXPECT_EQ(record_.script_restarts, 1) << "said again";

  ++record_.generation;
  EXPECT_FALSE(Fail(0, 5, "ConnectionError")) << "alike the second time of its own";
  EXPECT_EQ(record_.script_restarts, 2);
}

TEST_F(ScriptFailuresTest, MisuseEndsTheJobAtOnce) {
  v1::ScriptFailure misuse = Failure(1, 1, 5, "the state is of another dataset");
  misuse.set_fatal(true);
  const auto end = failures_.Take("gpu-0.1", misuse, now_.steady);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->member, "gpu-0.1");
  EXPECT_THAT(end->message, HasSubstr("another dataset"));
}

TEST_F(ScriptFailuresTest, WordsOfAnEarlierGenerationAreNotHeard) {
  record_.generation = 2;
  failures_.Take("gpu-0", Failure(1, 0, 5, "a"), now_.steady);
  failures_.Take("gpu-0", Failure(0, 0, 5, "a"), now_.steady);
  failures_.Judge(true, now_);
  EXPECT_EQ(record_.script_restarts, 0);
}

TEST_F(ScriptFailuresTest, ALongOutputKeepsItsEnd) {
  record_.job.spec.run_policy.max_restarts = 0;
  const auto end = Fail(0, 5, std::string(10'000, 'x') + "\nKeyError: 'image'");
  ASSERT_TRUE(end);
  EXPECT_LE(end->message.size(), 4096u);
  EXPECT_THAT(end->message, AllOf(StartsWith("runPolicy.maxRestarts allows 0 restarts"),
                                  HasSubstr("KeyError: 'image'")));
}

TEST_F(ScriptFailuresTest, TheFaultLastsUntilAllScriptsWorkAgain) {
  Fail(0, 5, "a");
  EXPECT_FALSE(record_.faults[0].recovery_seconds.has_value());
  now_.steady += milliseconds(2500);
  failures_.Recover(now_);
  EXPECT_EQ(record_.faults[0].recovery_seconds, 2.5);
  now_.steady += seconds(5);
  failures_.Recover(now_);
  EXPECT_EQ(record_.faults[0].recovery_seconds, 2.5);
}

}  // namespace
}  // namespace hetero::head
