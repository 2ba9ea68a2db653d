#pragma once

#include <functional>
#include <map>

#include "operator/children/pod_group.h"
#include "operator/kube/store.h"
#include "operator/plan/observed.h"
#include "operator/reconcile/departures.h"

namespace hetero::reconcile {

// The index group of nodes that say in which zone they are.
inline constexpr char kNodesInZones[] = "in a zone";

// The stores a reconcile reads. All are kept by informers elsewhere; indexed by OwnerOf
// (ownership.h) but jobs and nodes.
struct Stores {
  const kube::Store<plan::ObservedJob>* jobs = nullptr;
  const kube::Store<plan::ObservedPod>* pods = nullptr;
  const kube::Store<plan::ObservedObject>* services = nullptr;
  const kube::Store<plan::ObservedObject>* config_maps = nullptr;
  const kube::Store<plan::ObservedObject>* network_policies = nullptr;
  const kube::Store<plan::ObservedNode>* nodes = nullptr;  // null in namespaced mode
  Departures* departures = nullptr;  // of `pods`; null: those that go between two passes are missed
  // Of Kueue; null where the operator is not set up for it.
  const kube::Store<plan::ObservedWorkload>* workloads = nullptr;
  const kube::Store<plan::ObservedFlavor>* flavors = nullptr;
  const kube::Store<int32_t>* priorities = nullptr;  // of WorkloadPriorityClasses
  // The cluster has Kueue, of the version that is used, for jobs of that namespace.
  std::function<bool(const std::string& name_space)> queues_served;
  // Of the gang schedulers that the operator is set up for.
  std::map<children::GangApi, const kube::Store<plan::ObservedObject>*> pod_groups;
  // The cluster has that kind, for jobs of that namespace.
  std::function<bool(children::GangApi gang_api, const std::string& name_space)> gang_served;
};

}  // namespace hetero::reconcile
