// A job in a queue of Kueue that loses its quota in the middle of training and gets it back.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/integration/e2e/support/installation.h"
#include "tests/integration/e2e/support/nodes.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {
namespace {

using std::chrono::seconds;

constexpr char kGroup[] = "kueue.x-k8s.io/v1beta2";

void Install() {
  const std::string folder = std::string(std::getenv("HETERO_TEST_CLUSTER_DIR")) + "/kueue";
  const CommandResult kueue =
      RunCommand({testing::SourceDir() + "/tests/cluster/kind/kueue", folder}, "", seconds(180));
  ASSERT_EQ(kueue.exit_code, 0) << kueue.output;
  const CommandResult upgrade =
      RunCommand({"helm", "upgrade", "hetero", testing::SourceDir() + "/charts/hetero-operator",
                  "--namespace", kSystemNamespace, "--reuse-values", "--set", "kueue.enabled=true",
                  "--wait", "--timeout", "180s"},
                 "", seconds(200));
  ASSERT_EQ(upgrade.exit_code, 0) << upgrade.output;
}

// Room for one job of five pods with 50m each.
void MakeQueue(const std::string& name_space) {
  const json objects = {
      {{"apiVersion", kGroup}, {"kind", "ResourceFlavor"}, {"metadata", {{"name", "pool"}}}},
      {{"apiVersion", kGroup},
       {"kind", "WorkloadPriorityClass"},
       {"metadata", {{"name", "urgent"}}},
       {"value", 1000}},
      {{"apiVersion", kGroup},
       {"kind", "ClusterQueue"},
       {"metadata", {{"name", "team"}}},
       {"spec",
        {{"namespaceSelector", json::object()},
         {"preemption", {{"withinClusterQueue", "LowerPriority"}}},
         {"resourceGroups",
          {{{"coveredResources", {"cpu", "memory"}},
            {"flavors",
             {{{"name", "pool"},
               {"resources",
                {{{"name", "cpu"}, {"nominalQuota", "300m"}},
                 {{"name", "memory"}, {"nominalQuota", "4Gi"}}}}}}}}}}}}},
      {{"apiVersion", kGroup},
       {"kind", "LocalQueue"},
       {"metadata", {{"name", "team"}, {"namespace", name_space}}},
       {"spec", {{"clusterQueue", "team"}}}}};
  for (const json& object : objects) {
    ControlPlane::Get().MustKubectl({"apply", "-f", "-"}, object.dump());
  }
}

TEST(Queue, EvictedAndBackItIsTheSameTraining) {
  Installation::Get();
  if (!Nodes::reachable()) GTEST_SKIP() << "nodes are out of reach";
  Install();
  if (::testing::Test::HasFatalFailure()) return;
  json manifest = SlowJob("patient");
  manifest["spec"]["training"]["epochs"] = 4;
  const std::string digest = LocalReport(manifest).value("streamDigest", "");
  ASSERT_FALSE(digest.empty());
  JobNamespace space("queue");
  MakeQueue(space.name());
  MountData(manifest);
  manifest["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "team";
  manifest["spec"]["training"]["checkpoint"] = {{"uri", "file:///data/checkpoints"},
                                                {"everySteps", 1000000}};
  manifest["spec"]["output"]["uri"] = "file:///data/output";
  JobUnderTest patient(space.name(), manifest);
  ASSERT_TRUE(WaitStep(patient, 10));

  json urgent = SlowJob("urgent");
  urgent["spec"]["training"]["epochs"] = 1;
  urgent["metadata"]["labels"] = {{"kueue.x-k8s.io/queue-name", "team"},
                                  {"kueue.x-k8s.io/priority-class", "urgent"}};
  JobUnderTest before(space.name(), urgent);
  ASSERT_TRUE(WaitStep(before, 1));
  EXPECT_TRUE(patient.Is("Queued")) << patient.Describe();
  EXPECT_TRUE(patient.Pod("gpu", 0).is_null()) << "its quota is another's";
  ASSERT_TRUE(before.WaitIs("Succeeded", seconds(300)));
  ExpectSucceededWithDigest(patient, digest);
  const json status = patient.Status();
  EXPECT_EQ(status.value("attempt", 0), 2) << status.dump(1);
  EXPECT_EQ(status.value("restarts", 0), 0) << status.dump(1);
  const json report = json::parse(ReadFileOrDie(space.folder() + "/output/report.json"));
  EXPECT_EQ(report["streamDigest"], digest);
  EXPECT_EQ(report["stepsRedone"], 0);
  EXPECT_GT(report.value("resumedFromStep", 0), 0);
}

}  // namespace
}  // namespace hetero::testing
