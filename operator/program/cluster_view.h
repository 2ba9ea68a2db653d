#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/controller/manager.h"
#include "operator/kube/client.h"
#include "operator/plan/observed.h"
#include "operator/program/namespaced_informer.h"
#include "operator/reconcile/project.h"
#include "operator/reconcile/stores.h"

namespace hetero::program {

// All that the operator watches, and whose turn it is when something changes.
class ClusterView {
 public:
  // `key` of a job; called from any thread, must return at once.
  using Enqueue = std::function<void(const std::string& key)>;

  struct Options {
    std::vector<std::string> namespaces;         // empty: all of them, and the nodes
    bool queues = false;                         // Kueue's objects too, when the cluster has them
    std::vector<api::GangScheduler> gangs;       // likewise of these gang schedulers
    std::vector<std::string> disruption_taints;  // reconcile/node_notice.h, more_taints
    std::optional<reconcile::NodePrices> prices = {};
  };
  ClusterView(kube::Client& client, base::Clock& clock, metrics::Registry& registry,
              Options options, Enqueue enqueue);

  void AddTo(controller::Manager& manager);
  reconcile::Stores stores() const;

 private:
  template <typename T>
  using Informer = NamespacedInformer<T>;

  void WatchNodes(kube::Client& client, base::Clock& clock, metrics::Registry& registry);
  void WatchQueues(kube::Client& client, base::Clock& clock, metrics::Registry& registry);
  void WatchPodGroups(children::GangApi gang_api, kube::Client& client, base::Clock& clock,
                      metrics::Registry& registry);
  void OnNode(const kube::ObjectKey& key, const plan::ObservedNode* before,
              const plan::ObservedNode* now) const;
  void EnqueueUnlessEmpty(const std::string& key) const;

  const std::vector<std::string> namespaces_;
  const std::vector<std::string> taints_;
  const std::optional<reconcile::NodePrices> prices_;
  const Enqueue enqueue_;
  mutable reconcile::Departures departures_;
  Informer<plan::ObservedJob> jobs_;
  Informer<plan::ObservedPod> pods_;
  Informer<plan::ObservedObject> services_;
  Informer<plan::ObservedObject> config_maps_;
  Informer<plan::ObservedObject> network_policies_;
  std::unique_ptr<Informer<plan::ObservedNode>> nodes_;
  std::unique_ptr<Informer<plan::ObservedWorkload>> workloads_;
  std::unique_ptr<Informer<plan::ObservedFlavor>> flavors_;
  std::unique_ptr<Informer<int32_t>> priorities_;
  std::map<children::GangApi, std::unique_ptr<Informer<plan::ObservedObject>>> pod_groups_;
};

}  // namespace hetero::program
