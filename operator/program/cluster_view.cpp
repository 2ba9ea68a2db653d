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
                         std::vector<std::string> namespaces, Enqueue enqueue)
    : namespaces_(std::move(namespaces)),
      enqueue_(std::move(enqueue)),
      jobs_(client, clock, registry, {.resource = reconcile::kHeteroTrainingJobs}, namespaces_,
            reconcile::ProjectJob,
            [this](const ObjectKey& key, const auto&, const auto&) { enqueue_(key.ToString()); }),
      pods_(
          client, clock, registry, Children(kube::kPods), namespaces_,
          [](const nlohmann::json& object, const auto&) { return reconcile::ProjectPod(object); },
          [this](const ObjectKey& key, const auto& before, const auto& now) {
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
  if (!namespaces_.empty()) return;  // rights in namespaces do not reach nodes
  nodes_ = std::make_unique<Informer<plan::ObservedNode>>(
      client, clock, registry, kube::Watcher::Options{.resource = kube::kNodes}, namespaces_,
      [](const nlohmann::json& object, const auto&) { return reconcile::ProjectNode(object); },
      [this](const ObjectKey& key, const auto& before, const auto& now) {
        OnNode(key, before.get(), now.get());
      });
}

void ClusterView::AddTo(controller::Manager& manager) {
  jobs_.AddTo(manager, namespaces_);
  pods_.AddTo(manager, namespaces_);
  services_.AddTo(manager, namespaces_);
  config_maps_.AddTo(manager, namespaces_);
  network_policies_.AddTo(manager, namespaces_);
  if (nodes_ != nullptr) nodes_->AddTo(manager, {});
}

reconcile::Stores ClusterView::stores() const {
  return {.jobs = &jobs_.store(),
          .pods = &pods_.store(),
          .services = &services_.store(),
          .config_maps = &config_maps_.store(),
          .network_policies = &network_policies_.store(),
          .nodes = nodes_ != nullptr ? &nodes_->store() : nullptr};
}

// Kubelets report their nodes all the time; only whether a node is lost matters to jobs.
void ClusterView::OnNode(const ObjectKey& key, const plan::ObservedNode* before,
                         const plan::ObservedNode* now) const {
  const bool was_lost = before != nullptr && !before->ready;
  if (now != nullptr && was_lost == !now->ready) return;
  for (const std::string& job : JobsOnNode(pods_.store(), key.name)) enqueue_(job);
}

void ClusterView::EnqueueUnlessEmpty(const std::string& key) const {
  if (!key.empty()) enqueue_(key);
}

}  // namespace hetero::program
