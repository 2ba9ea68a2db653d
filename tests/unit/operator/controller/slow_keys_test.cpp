// Keys whose processing takes long leave workers for the others.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "base/fake_clock.h"
#include "operator/controller/work_queue.h"

namespace hetero::controller {
namespace {

// From now on; none of them is in the queue.
void MakeSlow(const std::vector<std::string>& keys, WorkQueue& queue) {
  for (const std::string& key : keys) {
    queue.Add(key);
    EXPECT_EQ(queue.Get({}), key);
    queue.SetSlow(key, true);
    queue.Done(key);
  }
}

class SlowKeys : public ::testing::Test {
 protected:
  // Processes each of them once, as slow ones.
  void MakeSlow(const std::vector<std::string>& keys) { controller::MakeSlow(keys, queue_); }
  void Add(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      queue_.Add(key);
      clock_.Advance(std::chrono::milliseconds(1));
    }
  }

  base::FakeClock clock_;
  metrics::Registry registry_;
  WorkQueue queue_{"test", clock_, registry_, {}, {.slow_at_once = 2}};
};

TEST_F(SlowKeys, OnlySoManyAreProcessedAtOnce) {
  MakeSlow({"a", "b", "c"});
  Add({"a", "b", "c", "quick"});
  EXPECT_EQ(queue_.Get({}), "a");
  EXPECT_EQ(queue_.Get({}), "b");
  EXPECT_EQ(queue_.Get({}), "quick");
  EXPECT_EQ(queue_.depth(), 1u);
  queue_.Done("quick");
  queue_.Done("a");
  EXPECT_EQ(queue_.Get({}), "c");
}

TEST_F(SlowKeys, TheOrderIsKeptWhereTheyMayBeProcessed) {
  MakeSlow({"a", "b"});
  Add({"first", "a", "second", "b"});
  for (const char* key : {"first", "a", "second", "b"}) EXPECT_EQ(queue_.Get({}), key);
}

TEST_F(SlowKeys, AKeyThatWasQuickOnceIsNoneAnyMore) {
  MakeSlow({"a", "b", "c"});
  Add({"a", "b"});
  EXPECT_EQ(queue_.Get({}), "a");
  EXPECT_EQ(queue_.Get({}), "b");
  queue_.Add("a");
  queue_.SetSlow("a", false);
  queue_.Done("a");
  EXPECT_EQ(queue_.Get({}), "a");
  Add({"c"});
  EXPECT_EQ(queue_.Get({}), "c") << "b alone is slow beside it";
}

TEST_F(SlowKeys, AWorkerThatWaitsIsTold) {
  MakeSlow({"a", "b", "c"});
  Add({"a", "b", "c"});
  EXPECT_EQ(queue_.Get({}), "a");
  EXPECT_EQ(queue_.Get({}), "b");
  std::atomic<bool> done = false;
  std::atomic<bool> early = false;
  std::jthread worker([&] {
    EXPECT_EQ(queue_.Get({}), "c");
    early = !done;
  });
  done = true;
  queue_.Done("b");
  worker.join();
  EXPECT_FALSE(early);
}

TEST_F(SlowKeys, AtTheEndAllAreHandedOut) {
  MakeSlow({"a", "b", "c"});
  Add({"a", "b", "c"});
  EXPECT_EQ(queue_.Get({}), "a");
  EXPECT_EQ(queue_.Get({}), "b");
  queue_.ShutDown();
  EXPECT_EQ(queue_.Get({}), "c");
  EXPECT_EQ(queue_.Get({}), std::nullopt);
}

// Of a namespace whose webhook hangs there is always a key that waits. One slow key of another, of
// which quick keys come all the time, used to lose its turn to each of those.
TEST(SlowKeysOfGroups, KeepTheirTurnWhateverQuickOnesTheirGroupHas) {
  base::FakeClock clock;
  metrics::Registry registry;
  WorkQueue queue("test", clock, registry, {},
                  {.group_of = [](const std::string& key) { return key.substr(0, 1); },
                   .workers = 16,
                   .slow_at_once = 1});
  MakeSlow({"b1", "b2", "b3", "b4", "a-slow"}, queue);
  queue.Add("b1");
  std::string hangs = queue.Get({}).value();
  for (const char* key : {"b2", "b3", "b4", "a-slow"}) queue.Add(key);
  for (int freed = 0; freed < 2; ++freed) {
    queue.Add("a-quick");
    ASSERT_EQ(queue.Get({}), "a-quick") << "the one slow place is taken";
    queue.Done("a-quick");
    queue.Done(hangs);
    hangs = queue.Get({}).value();
    if (hangs == "a-slow") return;
    queue.Add(hangs);
  }
  FAIL() << "a-slow waits behind " << hangs;
}

// Its quick ones have all that it may have, so that the place is kept until one of them ends.
TEST(SlowKeysOfGroups, KeepTheirTurnWhileTheirGroupHasItsShare) {
  base::FakeClock clock;
  metrics::Registry registry;
  WorkQueue queue("test", clock, registry, {},
                  {.group_of = [](const std::string& key) { return key.substr(0, 1); },
                   .workers = 4,
                   .slow_at_once = 1});
  MakeSlow({"b1", "b2", "a-slow"}, queue);
  queue.Add("b1");
  ASSERT_EQ(queue.Get({}), "b1");
  for (const char* key : {"a1", "a2"}) {
    queue.Add(key);
    ASSERT_EQ(queue.Get({}), key);
  }
  for (const char* key : {"a-slow", "b2", "a3"}) {
    queue.Add(key);
    clock.Advance(std::chrono::milliseconds(1));
  }
  queue.Done("b1");
  auto next = std::async(std::launch::async, [&] { return queue.Get({}); });
  EXPECT_EQ(next.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  queue.Done("a1");
  EXPECT_EQ(next.get(), "a-slow");
}

// A group's slow key is behind quick ones of its own: others' slow ones do not wait for
// those, too.
TEST(SlowKeysOfGroups, HoldUpNobodyWhileTheirGroupsQuickOnesComeFirst) {
  base::FakeClock clock;
  metrics::Registry registry;
  WorkQueue queue("test", clock, registry, {},
                  {.group_of = [](const std::string& key) { return key.substr(0, 1); },
                   .workers = 4,
                   .slow_at_once = 1});
  MakeSlow({"a-slow", "b-slow"}, queue);
  for (const char* key : {"a1", "a2", "a3", "a4", "a-slow", "b-slow"}) {
    queue.Add(key);
    clock.Advance(std::chrono::milliseconds(1));
  }
  ASSERT_EQ(queue.Get({}), "a1");
  ASSERT_EQ(queue.Get({}), "a2");
  auto next = std::async(std::launch::async, [&] { return queue.Get({}); });
  EXPECT_EQ(next.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  queue.Done("a1");  // ends the wait of an old queue, too
  queue.Done("a2");
  EXPECT_EQ(next.get(), "b-slow");
}

// With one worker, say.
TEST(SlowKeysOfGroups, TakeTurnsWithQuickOnes) {
  base::FakeClock clock;
  metrics::Registry registry;
  WorkQueue queue("test", clock, registry, {},
                  {.group_of = [](const std::string& key) { return key.substr(0, 1); },
                   .workers = 2,
                   .slow_at_once = 1});
  MakeSlow({"b1", "b2"}, queue);
  for (const char* key : {"b1", "b2", "a1", "a2"}) queue.Add(key);
  for (const char* key : {"b1", "a1", "b2", "a2"}) {
    ASSERT_EQ(queue.Get({}), key);
    queue.Done(key);
  }
}

}  // namespace
}  // namespace hetero::controller
