#include "operator/controller/work_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "base/fake_clock.h"

namespace hetero::controller {
namespace {

// Ported in spirit from client-go's util/workqueue/queue_test.go.
class WorkQueueTest : public ::testing::Test {
 protected:
  base::FakeClock clock_;
  metrics::Registry registry_;
  WorkQueue queue_{"test", clock_, registry_};
};

TEST_F(WorkQueueTest, AKeyWaitsAtMostOnce) {
  queue_.Add("foo");
  EXPECT_EQ(queue_.depth(), 1u);
  queue_.Add("bar");
  EXPECT_EQ(queue_.depth(), 2u);
  queue_.Add("foo");
  EXPECT_EQ(queue_.depth(), 2u);
}

TEST_F(WorkQueueTest, KeysComeInTheOrderTheyWereAdded) {
  for (const char* key : {"c", "a", "b"}) queue_.Add(key);
  EXPECT_EQ(queue_.Get({}), "c");
  EXPECT_EQ(queue_.Get({}), "a");
  EXPECT_EQ(queue_.Get({}), "b");
}

TEST_F(WorkQueueTest, AddedWhileProcessedComesAgainAfterDone) {
  queue_.Add("foo");
  EXPECT_EQ(queue_.Get({}), "foo");
  queue_.Add("foo");
  queue_.Add("foo");
  EXPECT_EQ(queue_.depth(), 0u);
  queue_.Done("foo");
  EXPECT_EQ(queue_.depth(), 1u);
  EXPECT_EQ(queue_.Get({}), "foo");
  queue_.Done("foo");
  EXPECT_EQ(queue_.depth(), 0u);
}

TEST_F(WorkQueueTest, SecondWorkerGetsTheKeyOnlyAfterDone) {
  queue_.Add("foo");
  EXPECT_EQ(queue_.Get({}), "foo");
  queue_.Add("foo");
  std::atomic<bool> done = false;
  std::atomic<bool> early = false;
  std::jthread second([&] {
    EXPECT_EQ(queue_.Get({}), "foo");
    early = !done;
    queue_.Done("foo");
  });
  done = true;
  queue_.Done("foo");
  second.join();
  EXPECT_FALSE(early);
  EXPECT_EQ(queue_.depth(), 0u);
}

TEST_F(WorkQueueTest, DoneWithoutGetIsHarmless) {
  queue_.Done("never seen");
  queue_.Add("foo");
  queue_.Done("foo");
  EXPECT_EQ(queue_.Get({}), "foo");
}

TEST_F(WorkQueueTest, ShutDownDrainsWhatIsQueuedAndTakesNothingMore) {
  queue_.Add("foo");
  queue_.Add("bar");
  queue_.AddAfter("delayed", std::chrono::seconds(1));
  EXPECT_EQ(queue_.Get({}), "foo");
  queue_.Add("foo");  // dirty: comes again although the queue is shut down meanwhile
  queue_.ShutDown();
  queue_.ShutDown();
  queue_.Add("added after shutdown");
  queue_.AddAfter("added after shutdown", {});
  queue_.AddRateLimited("added after shutdown");
  clock_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(queue_.Get({}), "bar");
  EXPECT_EQ(queue_.Get({}), std::nullopt);
  queue_.Done("foo");
  EXPECT_EQ(queue_.Get({}), "foo");
  EXPECT_EQ(queue_.Get({}), std::nullopt);
}

TEST_F(WorkQueueTest, ShutDownWakesWaitingWorkers) {
  std::atomic<int> ended = 0;
  std::vector<std::jthread> workers;
  for (int i = 0; i < 3; ++i) {
    workers.emplace_back([&] {
      EXPECT_EQ(queue_.Get({}), std::nullopt);
      ++ended;
    });
  }
  queue_.ShutDown();
  workers.clear();
  EXPECT_EQ(ended, 3);
}

TEST_F(WorkQueueTest, AStopEndsTheWaitAndLeavesTheKeysToOthers) {
  std::stop_source stop;
  std::jthread worker([&] { EXPECT_EQ(queue_.Get(stop.get_token()), std::nullopt); });
  stop.request_stop();
  worker.join();
  queue_.Add("foo");
  EXPECT_EQ(queue_.Get(stop.get_token()), std::nullopt);
  EXPECT_EQ(queue_.Get({}), "foo");
}

// TestBasic and TestAddWhileProcessing at once: every add is followed by a pass that starts after
// it, and no key is ever at two workers.
TEST_F(WorkQueueTest, StressOneWorkerPerKeyAndNoAddIsLost) {
  constexpr int kKeys = 20;
  constexpr int kProducers = 4;
  constexpr int kWorkers = 8;
  constexpr int kAddsPerProducer = 5000;
  std::array<std::atomic<int>, kKeys> added{};
  std::array<std::atomic<int>, kKeys> seen{};
  std::array<std::atomic<int>, kKeys> at_work{};
  std::atomic<bool> overlap = false;
  std::vector<std::jthread> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.emplace_back([&] {
      while (const std::optional<std::string> key = queue_.Get({})) {
        const int index = std::stoi(*key);
        if (++at_work[index] != 1) overlap = true;
        seen[index] = added[index].load();
        if (seen[index] % 7 == 0) std::this_thread::yield();
        --at_work[index];
        queue_.Done(*key);
      }
    });
  }
  {
    std::vector<std::jthread> producers;
    for (int p = 0; p < kProducers; ++p) {
      producers.emplace_back([&, p] {
        for (int i = 0; i < kAddsPerProducer; ++i) {
          const int index = (i * 7 + p) % kKeys;
          ++added[index];
          queue_.Add(std::to_string(index));
        }
      });
    }
  }
  queue_.ShutDown();
  workers.clear();
  EXPECT_FALSE(overlap);
  EXPECT_EQ(queue_.depth(), 0u);
  for (int i = 0; i < kKeys; ++i) EXPECT_EQ(seen[i], added[i]) << "key " << i;
}

}  // namespace
}  // namespace hetero::controller
