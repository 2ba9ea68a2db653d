#include "operator/program/cluster_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "api/job_resource.h"
#include "api/labels.h"
#include "base/fake_clock.h"
#include "tests/unit/operator/controller/watched_api.h"
#include "tests/unit/operator/kube/instant_clock.h"

namespace hetero::program {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

json Child(const std::string& name, const std::string& version, json labels = json::object()) {
  labels[api::kJobUidLabel] = "uid-vit";
  return {{"metadata",
           {{"namespace", "team"},
            {"name", name},
            {"resourceVersion", version},
            {"uid", "uid-" + name},
            {"labels", std::move(labels)},
            {"ownerReferences", {{{"uid", "uid-vit"}, {"controller", true}}}}}}};
}
json Pod(const std::string& job, const std::string& version, const std::string& node) {
  json pod =
      Child(job + "-gpu-0", version, {{api::kRoleLabel, "gpu"}, {api::kReplicaIndexLabel, "0"}});
  pod["spec"]["nodeName"] = node;
  return pod;
}
json Node(const std::string& name, const std::string& version, const std::string& ready) {
  return {{"metadata", {{"name", name}, {"resourceVersion", version}}},
          {"status",
           {{"conditions",
             {{{"type", "Ready"},
               {"status", ready},
               {"lastHeartbeatTime", version},
               {"lastTransitionTime", "2026-01-01T10:00:00Z"}}}}}}};
}
json Job(const std::string& name, const std::string& version) {
  return {{"apiVersion", api::kApiVersion},
          {"kind", api::kKind},
          {"metadata",
           {{"namespace", "team"},
            {"name", name},
            {"uid", "uid-" + name},
            {"resourceVersion", version},
            {"generation", 1}}}};
}

// The collections that the operator watches, in all namespaces or in one.
struct Paths {
  explicit Paths(const std::string& name_space = "") {
    const std::string in = name_space.empty() ? "" : "namespaces/" + name_space + "/";
    jobs = "/apis/training.hetero.dev/v1alpha1/" + in + "heterotrainingjobs";
    pods = "/api/v1/" + in + "pods";
    services = "/api/v1/" + in + "services";
    config_maps = "/api/v1/" + in + "configmaps";
    network_policies = "/apis/networking.k8s.io/v1/" + in + "networkpolicies";
  }
  std::vector<std::string> All() const {
    return {jobs, pods, services, config_maps, network_policies};
  }
  std::string jobs, pods, services, config_maps, network_policies;
  std::string nodes = "/api/v1/nodes";
};

class ClusterViewTest : public ::testing::Test {
 protected:
  void Start(const std::vector<std::string>& namespaces = {}, bool queues = false,
             const std::vector<api::GangScheduler>& gangs = {}) {
    view_ = std::make_unique<ClusterView>(
        client_, clock_, registry_,
        ClusterView::Options{
            .namespaces = namespaces, .queues = queues, .gangs = gangs, .disruption_taints = {}},
        [this](const std::string& key) { keys_.Add(key); });
    view_->AddTo(manager_);
    running_ = std::jthread([this](std::stop_token stop) {
      const absl::Status ended = manager_.Start(std::move(stop));
      EXPECT_TRUE(ended.ok()) << ended;
    });
  }
  void AwaitWatches(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) ASSERT_TRUE(api_.AwaitWatch(path)) << path;
  }

  kube::InstantClock clock_;
  base::FakeClock manager_clock_;
  metrics::Registry registry_;
  WatchedApi api_;
  kube::Client client_{api_, clock_, registry_, {.qps = 0}};
  controller::Manager manager_{manager_clock_, {}};
  Happened keys_;
  std::unique_ptr<ClusterView> view_;
  std::jthread running_;
};

TEST_F(ClusterViewTest, AChangeOfAJobOrOfAnyChildIsItsJobsTurn) {
  const Paths paths;
  api_.SetList(paths.jobs, {Job("vit", "1")});
  Start();
  AwaitWatches(paths.All());
  EXPECT_THAT(keys_.Take(1), ElementsAre("team/vit"));
  struct Case {
    std::string path;
    std::string name;
  };
  for (const Case& c : {Case{paths.services, "vit-head"}, Case{paths.config_maps, "vit-config"},
                        Case{paths.network_policies, "vit"}}) {
    for (const char* type : {"ADDED", "MODIFIED", "DELETED"}) {
      api_.Send(c.path, type, Child(c.name, "2"));
      EXPECT_THAT(keys_.Take(1), ElementsAre("team/vit")) << type << " " << c.path;
    }
  }
  for (const char* type : {"ADDED", "MODIFIED", "DELETED"}) {
    api_.Send(paths.pods, type, Pod("vit", "2", "node-1"));
    EXPECT_THAT(keys_.Take(1), ElementsAre("team/vit")) << type;
  }
  api_.Send(paths.jobs, "DELETED", Job("vit", "3"));
  EXPECT_THAT(keys_.Take(1), ElementsAre("team/vit"));
  EXPECT_EQ(view_->stores().jobs->size(), 0u);
}

TEST_F(ClusterViewTest, WhatBearsNoJobsNameIsNobodysTurn) {
  const Paths paths;
  Start();
  AwaitWatches(paths.All());
  api_.Send(paths.services, "ADDED", Child("database", "2"));
  api_.Send(paths.services, "ADDED", Child("vit-head", "3"));
  EXPECT_THAT(keys_.Take(1), ElementsAre("team/vit"));
  EXPECT_EQ(view_->stores().services->size(), 2u);
}

TEST_F(ClusterViewTest, ChildrenAreFoundByTheirOwnerInItsNamespaceAndNotByLabels) {
  const Paths paths;
  api_.SetList(paths.pods, {Pod("vit", "1", "node-1"), Pod("bert", "2", "node-1")});
  api_.SetList(paths.services, {Child("vit-head", "3")});
  api_.SetList(paths.config_maps, {Child("vit-config", "4")});
  api_.SetList(paths.network_policies, {Child("vit", "5")});
  Start();
  AwaitWatches(paths.All());
  const reconcile::Stores stores = view_->stores();
  EXPECT_EQ(stores.pods->In("team/uid-vit").size(), 2u);
  EXPECT_EQ(stores.services->In("team/uid-vit").size(), 1u);
  EXPECT_EQ(stores.config_maps->In("team/uid-vit").size(), 1u);
  EXPECT_EQ(stores.network_policies->In("team/uid-vit").size(), 1u);
  EXPECT_THAT(stores.pods->In("team/uid-bert"), IsEmpty());
  EXPECT_THAT(stores.pods->In("other/uid-vit"), IsEmpty());
}

// Other programs' objects, and Secrets of any kind, are none of its business.
TEST_F(ClusterViewTest, OnlyItsOwnChildrenAreAskedFor) {
  const Paths paths;
  Start();
  AwaitWatches(paths.All());
  AwaitWatches({paths.nodes});
  for (const kube::Request& request : api_.requests()) {
    const bool whole =
        request.path.starts_with(paths.jobs) || request.path.starts_with(paths.nodes);
    const auto selects =
        HasSubstr("labelSelector=app.kubernetes.io%2Fmanaged-by%3Dhetero-operator");
    if (whole) {
      EXPECT_THAT(request.path, Not(HasSubstr("labelSelector")));
    } else {
      EXPECT_THAT(request.path, selects);
    }
    EXPECT_THAT(request.path, Not(HasSubstr("secrets")));
  }
}

TEST_F(ClusterViewTest, ANodeThatIsLostOrFoundAgainIsTheTurnOfItsJobsAndAHeartbeatOfNobody) {
  const Paths paths;
  api_.SetList(paths.pods,
               {Pod("vit", "1", "node-1"), Pod("bert", "2", "node-1"), Pod("cnn", "3", "node-2")});
  Start();
  AwaitWatches(paths.All());
  AwaitWatches({paths.nodes});
  EXPECT_EQ(keys_.Take(3).size(), 3u);
  ASSERT_NE(view_->stores().nodes, nullptr);

  api_.Send(paths.nodes, "ADDED", Node("node-1", "4", "True"));
  api_.Send(paths.nodes, "MODIFIED", Node("node-1", "5", "True"));
  api_.Send(paths.nodes, "MODIFIED", Node("node-1", "6", "Unknown"));
  EXPECT_THAT(keys_.Take(2), ElementsAre("team/bert", "team/vit"));
  api_.Send(paths.nodes, "MODIFIED", Node("node-1", "7", "False"));  // still lost
  api_.Send(paths.nodes, "MODIFIED", Node("node-1", "8", "True"));
  EXPECT_THAT(keys_.Take(2), ElementsAre("team/bert", "team/vit"));
  api_.Send(paths.nodes, "ADDED", Node("node-2", "9", "Unknown"));
  EXPECT_THAT(keys_.Take(1), ElementsAre("team/cnn"));
  api_.Send(paths.nodes, "DELETED", Node("node-1", "10", "True"));
  EXPECT_THAT(keys_.Take(2), ElementsAre("team/bert", "team/vit"));
}

TEST_F(ClusterViewTest, ANodeThatIsAboutToGoIsTheTurnOfItsJobs) {
  const Paths paths;
  api_.SetList(paths.pods, {Pod("vit", "1", "node-1")});
  Start();
  AwaitWatches(paths.All());
  AwaitWatches({paths.nodes});
  EXPECT_THAT(keys_.Take(1), ElementsAre("team/vit"));
  json node = Node("node-1", "4", "True");
  api_.Send(paths.nodes, "ADDED", node);
  node["metadata"]["resourceVersion"] = "5";
  node["spec"]["taints"] = json::array({{{"key", "karpenter.sh/disrupted"}}});
  api_.Send(paths.nodes, "MODIFIED", node);
  EXPECT_THAT(keys_.Take(1), ElementsAre("team/vit"));
}

TEST_F(ClusterViewTest, NamespacesOfItsOwnAreWatchedEachAndNoNodes) {
  const Paths team("team");
  const Paths other("other");
  json job = Job("bert", "2");
  job["metadata"]["namespace"] = "other";
  api_.SetList(team.jobs, {Job("vit", "1")});
  api_.SetList(other.jobs, {job});
  Start({"team", "other"});
  AwaitWatches(team.All());
  AwaitWatches(other.All());
  EXPECT_THAT(keys_.Take(2), IsSupersetOf({"team/vit", "other/bert"}));
  EXPECT_EQ(view_->stores().jobs->size(), 2u);
  EXPECT_EQ(view_->stores().nodes, nullptr);
  for (const kube::Request& request : api_.requests()) {
    EXPECT_THAT(request.path, HasSubstr("/namespaces/"));
  }
}

TEST_F(ClusterViewTest, KueuesObjectsAreWatchedWhereTheOperatorIsSetUpForThem) {
  const std::string workloads = "/apis/kueue.x-k8s.io/v1beta2/workloads";
  json workload = Child("vit-gang", "1", {{api::kJobNameLabel, "vit"}});
  api_.SetList(workloads, {workload});
  Start({}, /*queues=*/true);
  AwaitWatches({workloads, "/apis/kueue.x-k8s.io/v1beta2/resourceflavors",
                "/apis/kueue.x-k8s.io/v1beta2/workloadpriorityclasses"});
  EXPECT_THAT(keys_.Take(1), ElementsAre("team/vit"));
  EXPECT_TRUE(view_->stores().queues_served("team"));
  EXPECT_EQ(view_->stores().workloads->In("team/uid-vit").size(), 1u);
}

// Its definitions may be applied later, and be taken away.
TEST_F(ClusterViewTest, AClusterWithoutKueueIsReadyAndIsLookedAtAgain) {
  const std::string in_team = "/apis/kueue.x-k8s.io/v1beta2/namespaces/team/workloads";
  const std::string flavors = "/apis/kueue.x-k8s.io/v1beta2/resourceflavors";
  for (const std::string& path : {in_team, flavors}) api_.SetServed(path, false);
  api_.SetList(flavors, {{{"metadata", {{"name", "spot"}, {"resourceVersion", "1"}}}}});
  Start({"team"}, /*queues=*/true);
  AwaitWatches({Paths("team").pods});
  EXPECT_EQ(view_->stores().flavors->size(), 0u);
  for (const std::string& path : {in_team, flavors}) api_.SetServed(path, true);
  AwaitWatches({in_team, flavors, "/apis/kueue.x-k8s.io/v1beta2/workloadpriorityclasses"});
  EXPECT_TRUE(view_->stores().queues_served("team"));
  EXPECT_EQ(view_->stores().flavors->size(), 1u);
  EXPECT_TRUE(manager_.Ready().ok()) << manager_.Ready();
}

TEST_F(ClusterViewTest, PodGroupsAreWatchedOfTheSchedulersThatAreSwitchedOn) {
  using children::GangApi;
  const std::string volcano = "/apis/scheduling.volcano.sh/v1beta1/podgroups";
  const std::string alpha = "/apis/scheduling.k8s.io/v1alpha2/podgroups";
  api_.SetList(volcano, {Child("vit-gang-1", "1")});
  for (const char* version : {"v1beta1/podgroups", "v1alpha1/workloads"}) {
    api_.SetServed(std::string("/apis/scheduling.k8s.io/") + version, false);
  }
  Start({}, /*queues=*/false, {api::GangScheduler::kVolcano, api::GangScheduler::kNative});
  AwaitWatches({volcano, alpha});
  EXPECT_THAT(keys_.Take(1), ElementsAre("team/vit"));
  const reconcile::Stores stores = view_->stores();
  EXPECT_EQ(stores.pod_groups.size(), 4u);
  EXPECT_FALSE(stores.pod_groups.contains(GangApi::kCoscheduling));
  EXPECT_TRUE(stores.gang_served(GangApi::kVolcano, "team"));
  EXPECT_TRUE(stores.gang_served(GangApi::kNativeAlpha, "team"));
  EXPECT_FALSE(stores.gang_served(GangApi::kNativeBeta, "team"));
  EXPECT_EQ(stores.pod_groups.at(GangApi::kVolcano)->In("team/uid-vit").size(), 1u);
}

TEST_F(ClusterViewTest, IsReadyOnlyWhenEverythingIsListed) {
  const Paths paths;
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {paths.jobs, "heterotrainingjobs"},
      {paths.pods, "pods"},
      {paths.services, "services"},
      {paths.config_maps, "configmaps"},
      {paths.network_policies, "networkpolicies"},
      {paths.nodes, "nodes"}};
  for (const auto& [path, _] : kinds) api_.Hold(path);
  Start();
  for (const auto& [path, name] : kinds) {
    EXPECT_THAT(std::string(manager_.Ready().message()), HasSubstr(name));
    api_.Release(path);
    AwaitWatches({path});
    EXPECT_THAT(std::string(manager_.Ready().message()), Not(HasSubstr(name)));
  }
  EXPECT_TRUE(manager_.Ready().ok()) << manager_.Ready();
}

}  // namespace
}  // namespace hetero::program
