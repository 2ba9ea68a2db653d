// Topology-aware scheduling: Kueue says node by node where a gang goes, and opens the gate of its
// pods once they are pinned there.
#include <set>

#include "tests/integration/operator/queue_fixture.h"

namespace hetero::testing {
namespace {

const kube::Resource kNodes = {"", "v1", "nodes", /*namespaced=*/false};
constexpr char kRack[] = "fake.hetero.dev/rack";

json Topology() {
  return json::parse(R"({"apiVersion": "v1", "kind": "List", "items": [
      {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Topology", "metadata": {"name": "racks"},
       "spec": {"levels": [{"nodeLabel": "fake.hetero.dev/rack"},
                           {"nodeLabel": "kubernetes.io/hostname"}]}},
      {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor",
       "metadata": {"name": "racked"},
       "spec": {"nodeLabels": {"fake.hetero.dev/node": "true"}, "topologyName": "racks"}}]})");
}

json OneFlavor(int cpus) {
  return {{"resourceGroups",
           {{{"coveredResources", {"cpu"}},
             {"flavors",
              {{{"name", "racked"},
                {"resources", {{{"name", "cpu"}, {"nominalQuota", std::to_string(cpus)}}}}}}}}}}};
}

// Two nodes in one rack, the third in another: GPU workers of 40 CPUs fit no node twice, and have
// to be in one rack.
TEST_F(Queues, PodsOfATopologyArePinnedAndUngated) {
  for (const auto& [node, rack] :
       {std::pair("node-1", "a"), std::pair("node-2", "b"), std::pair("node-3", "b")}) {
    plane_.Patch(kNodes, {"", node}, {{"metadata", {{"labels", {{kRack, rack}}}}}});
  }
  plane_.MustKubectl({"apply", "-f", "-"}, Topology().dump());
  TeamQueue queue("topology", 200, OneFlavor(200));
  json manifest = Queued("vit", 1, 2);
  json& gpu = RoleOf(manifest, "gpu")["template"];
  gpu["metadata"]["annotations"]["kueue.x-k8s.io/podset-required-topology"] = kRack;
  gpu["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "40";
  JobUnderTest job(queue.space(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  const json admission = Workload(job)["status"]["admission"];
  std::set<std::string> nodes;
  for (const json& pod : plane_.Objects(kube::kPods, queue.space())) {
    const std::string name = pod["metadata"]["name"];
    EXPECT_TRUE(pod["spec"].value("schedulingGates", json::array()).empty()) << name;
    const std::string pinned = pod["spec"]["nodeSelector"].value("kubernetes.io/hostname", "");
    EXPECT_EQ(pinned, pod["spec"].value("nodeName", "")) << name << admission;
    if (name.find("-gpu-") != std::string::npos) nodes.insert(pinned);
  }
  EXPECT_EQ(nodes, (std::set<std::string>{"node-2", "node-3"})) << "the rack with room for both";
  for (const json& assigned : admission["podSetAssignments"]) {
    EXPECT_TRUE(assigned.contains("topologyAssignment")) << assigned;
  }
  // A pod that is made anew goes where the one before was.
  const json before = job.Pod("gpu", 0);
  job.EndPod("gpu", 0, 1);
  json after;
  WaitFor(
      "its place is taken again",
      [&] {
        after = job.Pod("gpu", 0);
        return after.is_object() && after["metadata"]["uid"] != before["metadata"]["uid"] &&
               after["status"].value("phase", "") == "Running";
      },
      std::chrono::seconds(60), [&] { return job.Describe(); });
  EXPECT_EQ(after["spec"]["nodeName"], before["spec"]["nodeName"]);
  job.Continue();
  ASSERT_TRUE(job.WaitIs("Succeeded"));
  EXPECT_TRUE(queue.WaitUsage("0"));
}

}  // namespace
}  // namespace hetero::testing
