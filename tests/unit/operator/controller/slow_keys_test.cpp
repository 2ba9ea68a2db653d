// Keys whose processing takes long leave workers for the others.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/fake_clock.h"
#include "operator/controller/work_queue.h"

namespace hetero::controller {
namespace {

class SlowKeys : public testing::Test {
 protected:
  // Processes each of them once, as slow ones.
  void MakeSlow(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      queue_.Add(key);
      EXPECT_EQ(queue_.Get({}), key);
      queue_.SetSlow(key, true);
      queue_.Done(key);
    }
  }
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

}  // namespace
}  // namespace hetero::controller
