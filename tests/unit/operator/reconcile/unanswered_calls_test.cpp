// Calls that nobody answers, as when the admission webhook of a namespace hangs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fake_cluster.h"

namespace hetero::reconcile {
namespace {

using std::chrono::seconds;

bool CreatesPod(const kube::Request& request) {
  return request.method == "POST" && request.path.find("/pods") != std::string::npos;
}

int PodsAskedFor(const FakeApi& api) {
  const auto writes = api.writes();
  return static_cast<int>(std::count_if(writes.begin(), writes.end(), [](const auto& write) {
    return write.method == "POST" && write.path.find("/pods") != std::string::npos;
  }));
}

// Until its pods are what is to be created next.
void PreparePods(FakeCluster& cluster) {
  cluster.api.SetIntercept([](const kube::Request& request) -> std::optional<kube::Response> {
    if (!CreatesPod(request)) return {};
    return FakeApi::Error(403, "Forbidden", "pods is forbidden: exceeded quota: small");
  });
  cluster.CreateJob("vit");
  ASSERT_TRUE(cluster.Settle("vit"));
  cluster.clock.Advance(seconds(15));
  cluster.Sync();
}

// It waited for each of them, one timeout after another, and kept its worker.
TEST(UnansweredCalls, TheRestOfThePassIsPutOff) {
  for (const int code : {500, 504}) {
    FakeCluster cluster;
    PreparePods(cluster);
    const int before = PodsAskedFor(cluster.api);
    cluster.api.SetIntercept([code](const kube::Request& request) -> std::optional<kube::Response> {
      if (!CreatesPod(request)) return {};
      return FakeApi::Error(code, "InternalError",
                            "failed calling webhook: context deadline exceeded");
    });
    EXPECT_FALSE(cluster.Pass("vit").ok()) << "to be tried again";
    EXPECT_EQ(PodsAskedFor(cluster.api) - before, 1);
    cluster.api.SetIntercept(nullptr);
    ASSERT_TRUE(cluster.Settle("vit"));
    EXPECT_EQ(cluster.api.Objects("pods").size(), 4u);
  }
}

TEST(UnansweredCalls, AStageOfSlowAnswersIsCutShortToo) {
  FakeCluster cluster;
  PreparePods(cluster);
  cluster.api.SetIntercept([&](const kube::Request& request) -> std::optional<kube::Response> {
    if (CreatesPod(request)) cluster.clock.Advance(seconds(3));
    return {};
  });
  const auto result = cluster.Pass("vit");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(cluster.api.Objects("pods").size(), 2u) << "the third would have begun after 6 s";
  ASSERT_TRUE(result->requeue_after.has_value());
  EXPECT_LE(*result->requeue_after, std::chrono::milliseconds(1));
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_EQ(cluster.api.Objects("pods").size(), 4u);
}

}  // namespace
}  // namespace hetero::reconcile
