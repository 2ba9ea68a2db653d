#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "fake_cluster.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;
using Fate = FakeApi::Fate;
using State = plan::HeadReport::State;

// What has to be the same whatever happened on the way: the status without times, the names of
// what is left.
std::string EndState(const FakeCluster& cluster) {
  json status = json::parse(api::StatusToJson(cluster.Status("vit")));
  status.erase("startTime");
  status.erase("completionTime");
  for (json& condition : status["conditions"]) condition.erase("lastTransitionTime");
  if (status.contains("firstFailure")) status["firstFailure"].erase("time");
  json state = {{"status", status}};
  for (const char* plural : {"pods", "services", "secrets", "configmaps", "networkpolicies"}) {
    for (const auto& [key, object] : cluster.api.Objects(plural)) state[plural].push_back(key);
  }
  return state.dump(1);
}

void RunAll(FakeCluster& cluster) {
  cluster.RunPods();
  ASSERT_TRUE(cluster.Settle("vit"));
  cluster.HeadSays("vit", State::kRunning);
  ASSERT_TRUE(cluster.Settle("vit"));
}

// Start, one failed pod, success, clean-up.
std::string Live(FakeCluster& cluster) {
  cluster.CreateJob("vit");
  EXPECT_TRUE(cluster.Settle("vit"));
  cluster.clock.Advance(Expectations::kPatience);
  EXPECT_TRUE(cluster.Settle("vit"));
  EXPECT_EQ(cluster.api.Objects("pods").size(), 4u);
  RunAll(cluster);
  cluster.EndContainer("vit-cpu-1", 1, "no such file");
  EXPECT_TRUE(cluster.Settle("vit"));
  RunAll(cluster);
  EXPECT_EQ(cluster.Status("vit").restarts, 1);
  cluster.HeadSays("vit", State::kSucceeded);
  EXPECT_TRUE(cluster.Settle("vit"));
  cluster.FinishTerminating();
  cluster.clock.Advance(Expectations::kPatience);
  EXPECT_TRUE(cluster.Settle("vit"));
  return EndState(cluster);
}

class CrashTest : public ::testing::TestWithParam<Fate> {};

TEST_P(CrashTest, AtAnyWriteLeadsToTheSameEnd) { DieAtEachWrite(Live, GetParam()); }

INSTANTIATE_TEST_SUITE_P(BeforeAndAfterTheServer, CrashTest,
                         ::testing::Values(Fate::kLoseRequest, Fate::kLoseReply));

}  // namespace
}  // namespace hetero::reconcile
