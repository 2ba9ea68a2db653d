#include "runtime/head/generation_tracker.h"

#include <gtest/gtest.h>

#include "tests/unit/runtime/head/job_fixture.h"

namespace hetero::head {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr base::Instant kNow{std::chrono::hours(1)};
constexpr base::Duration kBrokenGrace = seconds(1);

// Two ranks, gpu-0.0 and gpu-0.1, of which nobody has joined.
class GenerationTrackerTest : public ::testing::Test {
 protected:
  GenerationTrackerTest() { record_.ranks = {{"gpu", 0, 0}, {"gpu", 0, 1}}; }

  MemberRecord& Join(int32_t rank, int64_t generation, int64_t incarnation = 1) {
    MemberRecord& member = record_.members[record_.ranks[static_cast<size_t>(rank)]];
    member.rank = rank;
    member.stream = rank;
    member.fits = true;
    member.hello = MakeHello("gpu", 0, rank, incarnation);
    member.hello.set_generation(generation);
    return member;
  }
  void Begin(int64_t number) {
    Join(0, 0);
    Join(1, 0);
    tracker_.Begin(number, record_);
  }

  JobRecord record_;
  GenerationTracker tracker_{kBrokenGrace};
};

TEST_F(GenerationTrackerTest, TheFirstGenerationOfANewJobIsOneOnceAllRanksHaveJoined) {
  EXPECT_FALSE(tracker_.First(record_).has_value());
  Join(0, 0);
  EXPECT_FALSE(tracker_.First(record_).has_value());
  Join(1, 0);
  const auto first = tracker_.First(record_);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->number, 1);
  EXPECT_FALSE(first->taken_over);
}

TEST_F(GenerationTrackerTest, ALostRankHasNotJoined) {
  Join(0, 0);
  Join(1, 0).lost = true;
  EXPECT_FALSE(tracker_.First(record_).has_value());
}

TEST_F(GenerationTrackerTest, AGenerationInWhichAllWorkIsTakenOver) {
  Join(0, 4);
  Join(1, 4);
  const auto first = tracker_.First(record_);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->number, 4);
  EXPECT_TRUE(first->taken_over);
}

TEST_F(GenerationTrackerTest, GenerationsThatDifferAreFollowedByANewOne) {
  Join(0, 4);
  Join(1, 3);
  const auto first = tracker_.First(record_);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->number, 5);
  EXPECT_FALSE(first->taken_over);
}

TEST_F(GenerationTrackerTest, BeginIsInTheRecordAndTellsWhoPlays) {
  EXPECT_FALSE(tracker_.Plays(Join(0, 0)));
  Begin(1);
  EXPECT_EQ(record_.generation, 1);
  EXPECT_TRUE(tracker_.Plays(record_.members.at({"gpu", 0, 0})));
  EXPECT_FALSE(tracker_.Plays(Join(0, 0, /*incarnation=*/2)));
}

TEST_F(GenerationTrackerTest, AReplacedRankNeedsTheNextGenerationAsSoonAsAllAreConnected) {
  Begin(1);
  EXPECT_FALSE(tracker_.Next(record_, kNow).has_value());
  Join(0, 0, /*incarnation=*/2);
  record_.members.at({"gpu", 0, 1}).stream.reset();
  EXPECT_FALSE(tracker_.Next(record_, kNow).has_value());
  record_.members.at({"gpu", 0, 1}).stream = 7;
  EXPECT_EQ(tracker_.Next(record_, kNow), 2);
  tracker_.Begin(2, record_);
  EXPECT_FALSE(tracker_.Next(record_, kNow).has_value());
}

TEST_F(GenerationTrackerTest, TheNextNumberIsAboveAllThatAnybodyKnows) {
  Begin(1);
  Join(0, 6, /*incarnation=*/2);
  EXPECT_EQ(tracker_.Next(record_, kNow), 7);
}

TEST_F(GenerationTrackerTest, ABrokenGroupOfLivingProcessesHasItsGrace) {
  Begin(1);
  MemberRecord& member = record_.members.at({"gpu", 0, 1});
  member.broken_generation = 1;
  EXPECT_FALSE(tracker_.Next(record_, kNow).has_value());
  EXPECT_FALSE(tracker_.Next(record_, kNow + milliseconds(999)).has_value());
  EXPECT_EQ(tracker_.Next(record_, kNow + kBrokenGrace), 2);
}

TEST_F(GenerationTrackerTest, TheGraceOfABrokenGroupBeginsAgainAfterItWasWhole) {
  Begin(1);
  MemberRecord& member = record_.members.at({"gpu", 0, 1});
  member.broken_generation = 1;
  EXPECT_FALSE(tracker_.Next(record_, kNow).has_value());
  member.broken_generation = 0;
  EXPECT_FALSE(tracker_.Next(record_, kNow + milliseconds(500)).has_value());
  member.broken_generation = 1;
  EXPECT_FALSE(tracker_.Next(record_, kNow + milliseconds(1400)).has_value());
  EXPECT_EQ(tracker_.Next(record_, kNow + milliseconds(2400)), 2);
}

TEST_F(GenerationTrackerTest, ABrokenGroupOfAnEarlierGenerationMeansNothing) {
  Begin(2);
  record_.members.at({"gpu", 0, 1}).broken_generation = 1;
  EXPECT_FALSE(tracker_.Next(record_, kNow).has_value());
  EXPECT_FALSE(tracker_.Next(record_, kNow + seconds(5)).has_value());
}

// A model that cannot train was tried again and again, without end.
TEST_F(GenerationTrackerTest, GenerationsWithoutACompletedStepAreCounted) {
  for (int64_t number = 1; number <= 4; ++number) {
    Begin(number);
    EXPECT_EQ(tracker_.fruitless(), number);
  }
  MemberRecord& member = record_.members.at({"gpu", 0, 1});
  member.progress.set_step(1);
  EXPECT_FALSE(tracker_.Next(record_, kNow).has_value());
  EXPECT_EQ(tracker_.fruitless(), 0);
  Begin(5);
  EXPECT_EQ(tracker_.fruitless(), 1);
}

TEST_F(GenerationTrackerTest, AStepTakenOverFromTheOthersIsNotOneThatWasCompleted) {
  Begin(1);
  MemberRecord& member = record_.members.at({"gpu", 0, 1});
  member.progress.set_step(40);
  member.progress.set_first_step(40);
  EXPECT_FALSE(tracker_.Next(record_, kNow).has_value());
  EXPECT_EQ(tracker_.fruitless(), 1);
  member.progress.set_step(41);
  EXPECT_FALSE(tracker_.Next(record_, kNow).has_value());
  EXPECT_EQ(tracker_.fruitless(), 0);
}

TEST_F(GenerationTrackerTest, TheGraceOfABrokenGroupGrowsWhileNoStepIsCompleted) {
  for (int64_t number = 1; number <= 3; ++number) Begin(number);
  record_.members.at({"gpu", 0, 1}).broken_generation = 3;
  EXPECT_FALSE(tracker_.Next(record_, kNow).has_value());
  EXPECT_FALSE(tracker_.Next(record_, kNow + seconds(3)).has_value());
  EXPECT_EQ(tracker_.Next(record_, kNow + seconds(4)), 4);
  for (int64_t number = 4; number <= 19; ++number) Begin(number);
  record_.members.at({"gpu", 0, 1}).broken_generation = 19;
  EXPECT_FALSE(tracker_.Next(record_, kNow).has_value());
  EXPECT_FALSE(tracker_.Next(record_, kNow + seconds(29)).has_value());
  EXPECT_EQ(tracker_.Next(record_, kNow + seconds(30)), 20);
}

}  // namespace
}  // namespace hetero::head
