// Groups of keys take turns, and none keeps a key of another from being processed.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/fake_clock.h"
#include "operator/controller/work_queue.h"

namespace hetero::controller {
namespace {

class GroupsOfKeys : public ::testing::Test {
 protected:
  // What is handed out, in order, until `count` keys are being processed.
  std::vector<std::string> Take(int count) {
    std::vector<std::string> keys;
    for (int i = 0; i < count; ++i) keys.push_back(queue_.Get({}).value_or(""));
    return keys;
  }
  void Add(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) queue_.Add(key);
  }

  base::FakeClock clock_;
  metrics::Registry registry_;
  WorkQueue queue_{
      "test",
      clock_,
      registry_,
      {},
      {.group_of = [](const std::string& key) { return key.substr(0, 1); }, .workers = 8}};
};

using Keys = std::vector<std::string>;

TEST_F(GroupsOfKeys, TakeTurns) {
  Add({"a1", "a2", "a3", "b1", "b2", "c1"});
  EXPECT_EQ(Take(6), Keys({"a1", "b1", "c1", "a2", "b2", "a3"}));
}

TEST_F(GroupsOfKeys, OneHasHalfOfTheWorkers) {
  Add({"a1", "a2", "a3", "a4", "a5", "b1"});
  EXPECT_EQ(Take(5), Keys({"a1", "b1", "a2", "a3", "a4"}));
  EXPECT_EQ(queue_.depth(), 1u) << "a5 waits";
  Add({"b2"});
  EXPECT_EQ(Take(1), Keys({"b2"}));
  for (const char* key : {"b1", "b2", "a2"}) queue_.Done(key);
  EXPECT_EQ(Take(1), Keys({"a5"}));
}

TEST_F(GroupsOfKeys, TheNextOneHasHalfOfWhatIsLeft) {
  Add({"a1", "a2", "a3", "a4", "a5"});
  Take(4);
  Add({"b1", "b2", "b3"});
  EXPECT_EQ(Take(2), Keys({"b1", "b2"}));
  Add({"c1", "c2"});
  EXPECT_EQ(Take(1), Keys({"c1"}));
  Add({"d1"});
  EXPECT_EQ(Take(1), Keys({"d1"})) << "the last worker";
  EXPECT_EQ(queue_.depth(), 3u);
}

TEST_F(GroupsOfKeys, AWorkerThatWaitsIsTold) {
  Add({"a1", "a2", "a3", "a4", "a5"});
  Take(4);
  std::atomic<bool> done = false;
  std::atomic<bool> early = false;
  std::jthread worker([&] {
    EXPECT_EQ(queue_.Get({}), "a5");
    early = !done;
  });
  done = true;
  queue_.Done("a1");
  worker.join();
  EXPECT_FALSE(early);
}

TEST_F(GroupsOfKeys, ShutDownHandsOutAllThatIsQueued) {
  Add({"a1", "a2", "a3", "a4", "a5"});
  Take(4);
  queue_.ShutDown();
  EXPECT_EQ(queue_.Get({}), "a5");
  EXPECT_EQ(queue_.Get({}), std::nullopt);
}

}  // namespace
}  // namespace hetero::controller
