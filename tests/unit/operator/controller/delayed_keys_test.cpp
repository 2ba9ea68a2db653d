#include <gtest/gtest.h>

#include <future>

#include "base/fake_clock.h"
#include "operator/controller/work_queue.h"

namespace hetero::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Ported in spirit from client-go's delaying_queue_test.go and rate_limiting_queue_test.go.
class DelayedKeysTest : public ::testing::Test {
 protected:
  // Takes the key that should be there.
  void Take(const std::string& wanted) {
    ASSERT_GE(queue_.depth(), 1u) << wanted;
    EXPECT_EQ(queue_.Get({}), wanted);
    queue_.Done(wanted);
  }
  // How long until a key comes, to the millisecond; it is taken.
  milliseconds TimeUntilNextKey() {
    milliseconds waited{0};
    while (queue_.depth() == 0) {
      clock_.Advance(milliseconds(1));
      waited += milliseconds(1);
    }
    queue_.Done(*queue_.Get({}));
    return waited;
  }

  base::FakeClock clock_;
  metrics::Registry registry_;
  WorkQueue queue_{"test", clock_, registry_};
};

TEST_F(DelayedKeysTest, AKeyComesOnceWhenItsTimeHasCome) {
  queue_.AddAfter("foo", milliseconds(50));
  EXPECT_EQ(queue_.depth(), 0u);
  clock_.Advance(milliseconds(60));
  Take("foo");
  clock_.Advance(seconds(10));
  EXPECT_EQ(queue_.depth(), 0u);
}

TEST_F(DelayedKeysTest, OfTwoTimesTheEarlierWins) {
  queue_.AddAfter("foo", milliseconds(50));
  queue_.AddAfter("foo", milliseconds(70));
  EXPECT_EQ(queue_.depth(), 0u);
  clock_.Advance(milliseconds(60));
  Take("foo");
  clock_.Advance(milliseconds(20));
  EXPECT_EQ(queue_.depth(), 0u);

  queue_.AddAfter("foo", milliseconds(50));
  queue_.AddAfter("foo", milliseconds(30));
  EXPECT_EQ(queue_.depth(), 0u);
  clock_.Advance(milliseconds(40));
  Take("foo");
  clock_.Advance(milliseconds(20));
  EXPECT_EQ(queue_.depth(), 0u);
}

TEST_F(DelayedKeysTest, ALaterKeyDoesNotHoldAnEarlierOne) {
  queue_.AddAfter("foo", seconds(1));
  queue_.AddAfter("bar", milliseconds(50));
  EXPECT_EQ(queue_.depth(), 0u);
  clock_.Advance(milliseconds(60));
  Take("bar");
  queue_.AddAfter("baz", seconds(2));
  clock_.Advance(seconds(1));
  Take("foo");
  clock_.Advance(seconds(2));
  Take("baz");
}

TEST_F(DelayedKeysTest, KeysDueTogetherComeInTheOrderOfTheirTimes) {
  queue_.AddAfter("foo", seconds(1));
  queue_.AddAfter("bar", milliseconds(500));
  queue_.AddAfter("baz", milliseconds(250));
  EXPECT_EQ(queue_.depth(), 0u);
  clock_.Advance(seconds(2));
  EXPECT_EQ(queue_.depth(), 3u);
  Take("baz");
  Take("bar");
  Take("foo");
}

TEST_F(DelayedKeysTest, ZeroOrLessIsNow) {
  queue_.AddAfter("foo", {});
  Take("foo");
  queue_.AddAfter("foo", seconds(-1));
  Take("foo");
}

TEST_F(DelayedKeysTest, TheLongestDelayDoesNotOverflow) {
  queue_.AddAfter("foo", base::Duration::max());
  clock_.Advance(std::chrono::hours(24 * 365));
  EXPECT_EQ(queue_.depth(), 0u);
}

TEST_F(DelayedKeysTest, AddNowLeavesTheLaterTimeStanding) {
  queue_.AddAfter("foo", seconds(1));
  queue_.Add("foo");
  Take("foo");
  clock_.Advance(seconds(1));
  Take("foo");
}

TEST_F(DelayedKeysTest, DueWhileProcessedComesAfterDone) {
  queue_.Add("foo");
  EXPECT_EQ(queue_.Get({}), "foo");
  queue_.AddAfter("foo", milliseconds(10));
  clock_.Advance(milliseconds(20));
  EXPECT_EQ(queue_.depth(), 0u);
  queue_.Done("foo");
  Take("foo");
}

// No call of the queue but the waiting Get: the timer's own thread must see to it, also when a
// second, earlier key arrives while it sleeps.
TEST_F(DelayedKeysTest, AWaitingWorkerIsWokenAtTheTime) {
  queue_.AddAfter("later", seconds(100));
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  std::future<std::optional<std::string>> got =
      std::async(std::launch::async, [&] { return queue_.Get({}); });
  queue_.AddAfter("soon", seconds(1));
  // Once is enough, unless the clock moves between the timer's look at it and its sleep.
  for (int i = 0; i < 50 && got.wait_for(seconds(0)) != std::future_status::ready; ++i) {
    ASSERT_TRUE(clock_.WaitForSleepers(1));
    clock_.Advance(seconds(1));
    got.wait_for(seconds(1));
  }
  queue_.ShutDown();  // ends the wait if all else failed
  EXPECT_EQ(got.get(), "soon");
}

// rate_limiting_queue_test.go, with the default 5 ms.
TEST_F(DelayedKeysTest, FailuresOfAKeyDoubleItsDelayUntilForgotten) {
  queue_.AddRateLimited("one");
  EXPECT_EQ(TimeUntilNextKey(), milliseconds(5));
  queue_.AddRateLimited("one");
  EXPECT_EQ(TimeUntilNextKey(), milliseconds(10));
  EXPECT_EQ(queue_.Failures("one"), 2);

  queue_.AddRateLimited("two");
  EXPECT_EQ(TimeUntilNextKey(), milliseconds(5));
  queue_.AddRateLimited("two");
  EXPECT_EQ(TimeUntilNextKey(), milliseconds(10));

  queue_.Forget("one");
  EXPECT_EQ(queue_.Failures("one"), 0);
  EXPECT_EQ(queue_.Failures("two"), 2);
  queue_.AddRateLimited("one");
  EXPECT_EQ(TimeUntilNextKey(), milliseconds(5));
}

// The starts of a thousand jobs took two thousand tokens, and a genuine failure waited minutes for
// one.
TEST_F(DelayedKeysTest, PassesThatWentWellDoNotHoldUpAFailure) {
  for (int i = 0; i < 2000; ++i) queue_.AddAgain("job" + std::to_string(i));
  queue_.AddRateLimited("failed");
  clock_.Advance(milliseconds(5));
  EXPECT_EQ(queue_.depth(), 2001u);
}

}  // namespace
}  // namespace hetero::controller
