// Nodes that reboot, an operator that is away, and evictions.
#include <gtest/gtest.h>

#include "tests/integration/e2e/support/installation.h"
#include "tests/integration/e2e/support/nodes.h"

namespace hetero::testing {
namespace {

using std::chrono::seconds;

class Node : public ::testing::Test {
 protected:
  void SetUp() override {
    Installation::Get();
    digest_ = LocalReport(SlowJob("node")).value("streamDigest", "");
    ASSERT_FALSE(digest_.empty());
  }
  std::string digest_;
};

// Keeps the role's pods on one node.
void Pin(json& job, const std::string& role, const std::string& node) {
  PodSpecOf(job, role)["nodeSelector"] = {{"kubernetes.io/hostname", node}};
}

TEST_F(Node, ARebootCostsWhatWasOnIt) {
  if (!Nodes::reachable()) GTEST_SKIP() << "nodes are out of reach";
  const std::vector<std::string> workers = Nodes::Workers();
  ASSERT_GE(workers.size(), 2u);
  // Not the operator's: what it does meanwhile is another test.
  const json operators = ControlPlane::Get().Objects(kube::kPods, kSystemNamespace,
                                                     "app.kubernetes.io/name=hetero-operator");
  ASSERT_FALSE(operators.empty());
  const bool first = operators[0]["spec"]["nodeName"] != workers[0];
  const std::string struck = workers[first ? 0 : 1], spared = workers[first ? 1 : 0];
  JobNamespace space("reboot");
  json manifest = SlowJob("node");
  Pin(manifest, "cpu", struck);
  Pin(manifest, "head", spared);
  Pin(manifest, "gpu", spared);
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(WaitStep(job, 10));
  const std::string trainer = job.PodUid("gpu", 0);
  Nodes::Reboot(struck);
  ExpectSucceededWithDigest(job, digest_);
  const json status = job.Status();
  EXPECT_EQ(status.value("attempt", 0), 1) << "what ran elsewhere went on\n" << status.dump(1);
  EXPECT_GE(status.value("restarts", 0), 1) << status.dump(1);
  EXPECT_LE(status.value("restarts", 0), 2) << "one for each pod of the node\n" << status.dump(1);
  ControlPlane::Get().MustKubectl(
      {"wait", "--for=condition=Ready", "node/" + struck, "--timeout=60s"});
}

TEST_F(Node, AnOperatorThatWasAwayCleansUp) {
  JobNamespace space("away");
  JobUnderTest job(space.name(), SlowJob("node"));
  ASSERT_TRUE(job.WaitIs("Running", seconds(180)));
  Installation::Get().ScaleOperator(0);
  WaitFor(
      "the head ends by itself",
      [&] {
        const json head = job.Pod("head", 0);
        return head.is_object() && head["status"].value("phase", "") == "Succeeded";
      },
      seconds(180), [&] { return job.Describe(); });
  EXPECT_FALSE(job.Is("Succeeded")) << "nobody is there to say so";
  Installation::Get().ScaleOperator(1);
  ExpectSucceededWithDigest(job, digest_);
  EXPECT_EQ(job.Status().value("restarts", 0), 0) << job.Status().dump(1);
}

TEST_F(Node, AnEvictedHeadCostsNoRestart) {
  JobNamespace space("evicted");
  JobUnderTest job(space.name(), SlowJob("node"));
  ASSERT_TRUE(WaitStep(job, 10));
  const kube::ObjectKey head = job.PodKey("head", 0);
  const std::string old_pod = job.PodUid("head", 0);
  const json eviction = {{"apiVersion", "policy/v1"},
                         {"kind", "Eviction"},
                         {"metadata", {{"name", head.name}, {"namespace", head.name_space}}}};
  ControlPlane::Get().MustKubectl(
      {"create", "--raw",
       "/api/v1/namespaces/" + head.name_space + "/pods/" + head.name + "/eviction", "-f", "-"},
      eviction.dump());
  WaitFor(
      "another head",
      [&] {
        const std::string now = job.PodUid("head", 0);
        return !now.empty() && now != old_pod;
      },
      seconds(120), [&] { return job.Describe(); });
  ExpectSucceededWithDigest(job, digest_);
  EXPECT_EQ(job.Status().value("restarts", 0), 0) << job.Status().dump(1);
}

}  // namespace
}  // namespace hetero::testing
