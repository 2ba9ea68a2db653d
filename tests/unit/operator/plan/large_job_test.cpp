// Jobs of thousands of pods: what a plan for them takes.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <variant>

#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// A pod's JSON is 25 kB in memory: 10,000 of them are more than the operator may have.
TEST(LargeJob, APlanOf10000PodsHoldsNoPodJson) {
  ModelCluster cluster{Job().Cpus(9997)};
  cluster.settings.max_pods = 10000;
  cluster.Pass();
  const Observed seen = cluster.Look();
  const size_t before = HeapBytes();
  const Plan plan = MakePlan(seen, cluster.settings, cluster.now);
  const size_t held = HeapBytes() - before;  // a sanitizer's allocator reports nothing

  ASSERT_EQ(plan.stages.size(), 2u);
  ASSERT_EQ(plan.stages[1].size(), 10000u);
  const auto& first = std::get<CreatePod>(plan.stages[1].front());
  for (const Effect& effect : plan.stages[1]) {
    ASSERT_EQ(std::get<CreatePod>(effect).origin, first.origin) << "what is common is kept once";
  }
  EXPECT_LT(held, 10000u * 256) << "bytes for each pod to be created";
  EXPECT_LE(sizeof(Effect), 128u);
}

// Each pod was looked up among all slots: half a second a pass for these.
// In this process' own CPU time: other programs take what they like meanwhile.
TEST(LargeJob, APassTakesTimeInProportionToThePods) {
  const auto time_for = [](int pods) {
    ModelCluster cluster{Job().Cpus(pods)};
    cluster.settings.max_pods = 80000;
    cluster.Settle();
    const Observed seen = cluster.Look();
    std::clock_t least = std::numeric_limits<std::clock_t>::max();
    for (int i = 0; i < 3; ++i) {
      const std::clock_t from = std::clock();
      const Plan plan = MakePlan(seen, cluster.settings, cluster.now);
      EXPECT_TRUE(plan.stages.empty());
      least = std::min(least, std::clock() - from);
    }
    return least;
  };
  EXPECT_LT(time_for(20000), 40 * time_for(2000)) << "ten times as many";
}

}  // namespace
}  // namespace hetero::plan
