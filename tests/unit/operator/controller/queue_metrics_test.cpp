#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/fake_clock.h"
#include "operator/controller/work_queue.h"

namespace hetero::controller {
namespace {

using ::testing::ElementsAre;

// Ported in spirit from client-go's metrics_test.go; read as Prometheus would.
class QueueMetricsTest : public ::testing::Test {
 protected:
  // The value of `name{controller="jobs",name="jobs"[,more]}`.
  double Value(const std::string& name) const {
    return Line(name + "{controller=\"jobs\",name=\"jobs\"} ");
  }
  double Line(const std::string& start) const {
    std::istringstream text(registry_.Text());
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with(start)) return std::stod(line.substr(start.size()));
    }
    ADD_FAILURE() << "no line " << start << " in\n" << registry_.Text();
    return -1;
  }

  base::FakeClock clock_;
  metrics::Registry registry_;
  WorkQueue queue_{"jobs", clock_, registry_};
};

TEST_F(QueueMetricsTest, FollowAKeyThroughTheQueue) {
  queue_.Add("foo");
  EXPECT_EQ(Value("workqueue_adds_total"), 1);
  EXPECT_EQ(Value("workqueue_depth"), 1);

  clock_.Advance(std::chrono::microseconds(50));
  EXPECT_EQ(queue_.Get({}), "foo");
  EXPECT_EQ(Value("workqueue_depth"), 0);
  EXPECT_DOUBLE_EQ(Value("workqueue_queue_duration_seconds_sum"), 5e-5);
  EXPECT_EQ(Value("workqueue_queue_duration_seconds_count"), 1);

  for (int i = 0; i < 5; ++i) queue_.Add("foo");
  EXPECT_EQ(Value("workqueue_adds_total"), 2);
  EXPECT_EQ(Value("workqueue_depth"), 1);

  clock_.Advance(std::chrono::microseconds(25));
  queue_.Done("foo");
  EXPECT_DOUBLE_EQ(Value("workqueue_work_duration_seconds_sum"), 2.5e-5);
  EXPECT_EQ(Value("workqueue_work_duration_seconds_count"), 1);
  EXPECT_EQ(Value("workqueue_depth"), 1);

  EXPECT_EQ(queue_.Get({}), "foo");
  EXPECT_DOUBLE_EQ(Value("workqueue_queue_duration_seconds_sum"), 7.5e-5);
  EXPECT_EQ(Value("workqueue_queue_duration_seconds_count"), 2);
  queue_.Done("foo");
}

TEST_F(QueueMetricsTest, UnfinishedWorkGrowsAndEndsAtZero) {
  queue_.Add("a");
  queue_.Add("b");
  ASSERT_EQ(queue_.Get({}), "a");
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  clock_.Advance(std::chrono::milliseconds(200));
  ASSERT_EQ(queue_.Get({}), "b");
  clock_.Advance(std::chrono::milliseconds(300));
  ASSERT_TRUE(clock_.WaitForSleepers(1));  // measured, and asleep again
  EXPECT_DOUBLE_EQ(Value("workqueue_unfinished_work_seconds"), 0.8);
  EXPECT_DOUBLE_EQ(Value("workqueue_longest_running_processor_seconds"), 0.5);

  queue_.Done("a");
  queue_.Done("b");
  clock_.Advance(std::chrono::milliseconds(500));
  // The next measurement begins only after the one that found nothing, which sets zero.
  queue_.Add("c");
  ASSERT_EQ(queue_.Get({}), "c");
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  EXPECT_EQ(Value("workqueue_unfinished_work_seconds"), 0);
  EXPECT_EQ(Value("workqueue_longest_running_processor_seconds"), 0);
}

TEST_F(QueueMetricsTest, AnIdleQueueDoesNotWakeUp) {
  queue_.Add("a");
  ASSERT_EQ(queue_.Get({}), "a");
  queue_.Done("a");
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  clock_.Advance(std::chrono::milliseconds(500));
  EXPECT_FALSE(clock_.AdvanceToNextSleeper());
}

TEST_F(QueueMetricsTest, RetriesAreAddsWithADelay) {
  queue_.Add("a");
  queue_.AddAfter("a", {});
  EXPECT_EQ(Value("workqueue_retries_total"), 0);
  queue_.AddAfter("b", std::chrono::seconds(1));
  queue_.AddRateLimited("c");
  EXPECT_EQ(Value("workqueue_retries_total"), 2);
}

TEST_F(QueueMetricsTest, BucketsAreControllerRuntimes) {
  std::istringstream text(registry_.Text());
  std::vector<std::string> bounds;
  const std::string start =
      "workqueue_work_duration_seconds_bucket{controller=\"jobs\",name=\"jobs\",le=\"";
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with(start)) continue;
    bounds.push_back(line.substr(start.size(), line.find('"', start.size()) - start.size()));
  }
  ASSERT_EQ(bounds.size(), 13u);
  EXPECT_DOUBLE_EQ(std::stod(bounds.front()), 1e-8);
  EXPECT_DOUBLE_EQ(std::stod(bounds[11]), 1000);
  EXPECT_EQ(bounds.back(), "+Inf");
}

}  // namespace
}  // namespace hetero::controller
