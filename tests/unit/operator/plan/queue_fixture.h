#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {

inline constexpr char kPreempted[] = "Preempted to accommodate a workload of higher priority";

// A job `vit` (1 head, 2 CPU workers, 2 GPU workers) in queue `team`.
class QueueTest : public ::testing::Test {
 protected:
  explicit QueueTest(Job job = Job().Cpus(2).Queue("team")) : cluster_(job) {
    cluster_.queues.support = ObservedQueues::Support::kServed;
    cluster_.queues.flavors["on-demand"] = {.node_labels = {{"pool", "gpu"}},
                                            .tolerations = {R"({"key":"gpu"})"}};
  }
  std::string Message() const { return cluster_.Condition(api::ConditionType::kQueued).message; }
  std::string Queued() const { return cluster_.State(api::ConditionType::kQueued); }
  void Train() {
    cluster_.Settle();
    cluster_.Admit();
    cluster_.RunJob();
    ASSERT_TRUE(cluster_.status().Is(api::ConditionType::kRunning));
  }
  // Of a job that trains, until its quota is given back.
  void LoseQuota(const std::string& reason = "Preempted") {
    cluster_.Evict(reason, kPreempted);
    cluster_.Settle();
    cluster_.HeadSays(HeadReport::State::kStopped);
    cluster_.Settle();
    cluster_.VanishTerminating();
    cluster_.Settle();
  }

  ModelCluster cluster_;
};

}  // namespace hetero::plan
