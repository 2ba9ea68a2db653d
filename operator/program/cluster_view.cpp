#include "operator/program/cluster_view.h"

#include <utility>

#include "api/labels.h"
#include "operator/program/job_keys.h"
#include "operator/reconcile/job_resource.h"
#include "operator/reconcile/ownership.h"
#include "operator/reconcile/project.h"

namespace hetero::program {
namespace {

using kube::ObjectKey;
using ObjectPtr = std::shared_ptr<const plan::ObservedObject>;

kube::Watcher::Options Children(const kube::Resource& resource) {
  return {.resource = resource, .label_selector = api::kChildSelector};
}

ObjectPtr ProjectObject(const nlohmann::json& object, const ObjectPtr&) {
  return reconcile::ProjectObject(object);
}

std::string OwnerOfObject(const plan::ObservedObject& object) { return reconcile::OwnerOf(object); }

}  // namespace

ClusterView::ClusterView(kube::Client& client, base::Clock& clock, metrics::Registry& registry,
                         Options options, Enqueue enqueue)
    : namespaces_(std::move(options.namespaces)),
      taints_(std::move(options.disruption_taints)),
      prices_(std::move(options.prices)),
      enqueue_(std::move(enqueue)),
      jobs_(client, clock, registry, {.resource = reconcile::kHeteroTrainingJobs}, namespaces_,
            reconcile::ProjectJob,
            [this](const ObjectKey& key, const auto&, const auto&) { enqueue_(key.ToString()); }),
      pods_(
          client, clock, registry, Children(kube::kPods), namespaces_,
          [this](const nlohmann::json& object, const auto&) {
            return reconcile::ProjectPod(object, prices_.has_value());
          },
          [this, &clock](const ObjectKey& key, const auto& before, const auto& now) {
            const bool gone = before != nullptr && (now == nullptr || now->uid != before->uid);
            if (gone) departures_.Add(reconcile::OwnerOf(*before), before, clock.WallNow());
            EnqueueUnlessEmpty(JobOfPod(key, now != nullptr ? *now : *before));
          },
          [](const plan::ObservedPod& pod) { return reconcile::OwnerOf(pod); }),
      services_(
          client, clock, registry, Children(kube::kServices), namespaces_, ProjectObject,
          [this](const ObjectKey& key, const auto&, const auto&) {
            EnqueueUnlessEmpty(JobOfService(key));
          },
          OwnerOfObject),
      config_maps_(
          client, clock, registry, Children(kube::kConfigMaps), namespaces_, ProjectObject,
          [this](const ObjectKey& key, const auto&, const auto&) {
            EnqueueUnlessEmpty(JobOfConfigMap(key));
          },
          OwnerOfObject),
      network_policies_(
          client, clock, registry, Children(kube::kNetworkPolicies), namespaces_, ProjectObject,
          [this](const ObjectKey& key, const auto&, const auto&) {
            EnqueueUnlessEmpty(JobOfNetworkPolicy(key));
          },
          OwnerOfObject) {
  if (namespaces_.empty()) WatchNodes(client, clock, registry);  // others have no right to
  if (options.queues) WatchQueues(client, clock, registry);
  for (const api::GangScheduler scheduler : options.gangs) {
    for (const children::GangApi gang_api : children::GangApisOf(scheduler)) {
      WatchPodGroups(gang_api, client, clock, registry);
    }
  }
}

void ClusterView::WatchNodes(kube::Client& client, base::Clock& clock,
                             metrics::Registry& registry) {
  nodes_ = std::make_unique<Informer<plan::ObservedNode>>(
      client, clock, registry, kube::Watcher::Options{.resource = kube::kNodes},
      std::vector<std::string>{},
      [this](const nlohmann::json& object, const auto&) {
        return reconcile::ProjectNode(object, taints_, prices_ ? &*prices_ : nullptr);
      },
      [this](const ObjectKey& key, const auto& before, const auto& now) {
        OnNode(key, before.get(), now.get());
      },
      [](const plan::ObservedNode& node) {
        return std::string(node.in_zone ? reconcile::kNodesInZones : "");
      });
}

void ClusterView::WatchQueues(kube::Client& client, base::Clock& clock,
                              metrics::Registry& registry) {
  kube::Watcher::Options workloads = Children(reconcile::kWorkloads);
  workloads.optional = true;
  workloads_ = std::make_unique<Informer<plan::ObservedWorkload>>(
      client, clock, registry, std::move(workloads), namespaces_,
      [](const nlohmann::json& object, const auto&) { return reconcile::ProjectWorkload(object); },
      [this](const ObjectKey& key, const auto& before, const auto& now) {
        EnqueueUnlessEmpty(JobOfWorkload(key, now != nullptr ? *now : *before));
      },
      [](const plan::ObservedWorkload& workload) { return reconcile::OwnerOf(workload); });
  const auto nobody = [](const ObjectKey&, const auto&, const auto&) {};
  flavors_ = std::make_unique<Informer<plan::ObservedFlavor>>(
      client, clock, registry,
      kube::Watcher::Options{.resource = reconcile::kResourceFlavors, .optional = true},
      std::vector<std::string>{},
      [](const nlohmann::json& object, const auto&) { return reconcile::ProjectFlavor(object); },
      nobody);
  priorities_ = std::make_unique<Informer<int32_t>>(
      client, clock, registry,
      kube::Watcher::Options{.resource = reconcile::kWorkloadPriorityClasses, .optional = true},
      std::vector<std::string>{},
      [](const nlohmann::json& object, const auto&) { return reconcile::ProjectPriority(object); },
      nobody);
}

void ClusterView::WatchPodGroups(children::GangApi gang_api, kube::Client& client,
                                 base::Clock& clock, metrics::Registry& registry) {
  kube::Watcher::Options groups = Children(reconcile::PodGroupsOf(gang_api));
  groups.optional = true;
  pod_groups_[gang_api] = std::make_unique<Informer<plan::ObservedObject>>(
      client, clock, registry, std::move(groups), namespaces_,
      [gang_api](const nlohmann::json& object, const auto&) {
        return reconcile::ProjectPodGroup(object, gang_api);
      },
      [this](const ObjectKey& key, const auto&, const auto&) {
        EnqueueUnlessEmpty(JobOfPodGroup(key));
      },
      OwnerOfObject);
}

void ClusterView::AddTo(controller::Manager& manager) {
  jobs_.AddTo(manager, namespaces_);
  pods_.AddTo(manager, namespaces_);
  services_.AddTo(manager, namespaces_);
  config_maps_.AddTo(manager, namespaces_);
  network_policies_.AddTo(manager, namespaces_);
  if (nodes_ != nullptr) nodes_->AddTo(manager, {});
  for (const auto& [gang_api, groups] : pod_groups_) groups->AddTo(manager, namespaces_);
  if (workloads_ == nullptr) return;
  workloads_->AddTo(manager, namespaces_);
  flavors_->AddTo(manager, {});
  priorities_->AddTo(manager, {});
}

reconcile::Stores ClusterView::stores() const {
  reconcile::Stores stores{.jobs = &jobs_.store(),
                           .pods = &pods_.store(),
                           .services = &services_.store(),
                           .config_maps = &config_maps_.store(),
                           .network_policies = &network_policies_.store(),
                           .nodes = nodes_ != nullptr ? &nodes_->store() : nullptr,
                           .departures = &departures_};
  if (workloads_ != nullptr) {
    stores.workloads = &workloads_->store();
    stores.flavors = &flavors_->store();
    stores.priorities = &priorities_->store();
    stores.queues_served = [this](const std::string& name_space) {
      return workloads_->served(name_space);
    };
  }
  for (const auto& [gang_api, groups] : pod_groups_) stores.pod_groups[gang_api] = &groups->store();
  stores.gang_served = [this](children::GangApi gang_api, const std::string& name_space) {
    return pod_groups_.at(gang_api)->served(name_space);
  };
  return stores;
}

// Kubelets report their nodes all the time; only whether a node is lost, or about to go, matters to
// jobs.
void ClusterView::OnNode(const ObjectKey& key, const plan::ObservedNode* before,
                         const plan::ObservedNode* now) const {
  const bool was_lost = before != nullptr && !before->ready;
  const plan::NodeNotice notice = before != nullptr ? before->notice : plan::NodeNotice{};
  if (now != nullptr && was_lost == !now->ready && notice == now->notice) return;
  for (const std::string& job : JobsOnNode(pods_.store(), key.name)) enqueue_(job);
}

void ClusterView::EnqueueUnlessEmpty(const std::string& key) const {
  if (!key.empty()) enqueue_(key);
}

}  // namespace hetero::program
