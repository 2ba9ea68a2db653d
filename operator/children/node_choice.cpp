#include "operator/children/node_choice.h"

#include <string>
#include <utility>

#include "api/labels.h"
#include "base/json_access.h"
#include "operator/children/template_json.h"

namespace hetero::children {
namespace {

using nlohmann::json;

constexpr char kRequired[] = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr char kPreferred[] = "preferredDuringSchedulingIgnoredDuringExecution";
constexpr char kHostLabel[] = "kubernetes.io/hostname";
constexpr int kSameZoneWeight = 50;
constexpr int kSameHostWeight = 10;

json Requirement(const std::string& key, const char* op, const std::string& value) {
  return {{"key", key}, {"operator", op}, {"values", json::array({value})}};
}

// Alternatives, any of which will do: each a list of requirements that all have to hold.
json TermsOf(api::Capacity capacity, const Settings& settings) {
  json terms = json::array();
  if (capacity == api::Capacity::kSpot) {
    for (const auto& [key, value] : settings.spot_labels) {
      terms.push_back(json::array({Requirement(key, "In", value)}));
    }
  } else {
    json none = json::array();  // a node without the label is none of it
    for (const auto& [key, value] : settings.spot_labels) {
      none.push_back(Requirement(key, "NotIn", value));
    }
    terms.push_back(std::move(none));
  }
  return terms;
}

// The template's own terms are alternatives, too: each of them goes with each of ours.
void RequireNodes(const json& ours, json& spec) {
  json& affinity = MutableObject(MutableObject(spec, "affinity"), "nodeAffinity");
  json& given = MutableList(MutableObject(affinity, kRequired), "nodeSelectorTerms");
  if (given.empty()) given.push_back(json::object());
  json terms = json::array();
  for (const json& term : given) {
    for (const json& requirements : ours) {
      json both = term.is_object() ? term : json::object();
      json& expressions = MutableList(both, "matchExpressions");
      expressions.insert(expressions.end(), requirements.begin(), requirements.end());
      terms.push_back(std::move(both));
    }
  }
  given = std::move(terms);
}

// Spot nodes often repel whoever does not say that it can bear to be evicted.
void TolerateSpot(const Settings& settings, json& spec) {
  json& tolerations = MutableList(spec, "tolerations");
  for (const auto& [key, value] : settings.spot_labels) {
    tolerations.push_back(
        {{"key", key}, {"operator", "Equal"}, {"value", value}, {"effect", "NoSchedule"}});
  }
}

json PodsOf(const json& labels, const char* topology) {
  return {{"labelSelector", {{"matchLabels", labels}}}, {"topologyKey", topology}};
}

void PreferNear(json term, int weight, json& pod_affinity) {
  MutableList(pod_affinity, kPreferred)
      .push_back({{"weight", weight}, {"podAffinityTerm", std::move(term)}});
}

}  // namespace

void ChooseNodes(const api::HeteroTrainingJob& job, const api::Role& role, const Settings& settings,
                 json& spec) {
  const json affinity = base::ObjectOf(spec, "affinity");
  if (affinity.dump().find(kArchitectureLabel) == std::string::npos) {
    SetDefault(MutableObject(spec, "nodeSelector"), kArchitectureLabel, kArchitecture);
  }
  if (role.capacity && !settings.spot_labels.empty()) {
    if (*role.capacity != api::Capacity::kAny)
      RequireNodes(TermsOf(*role.capacity, settings), spec);
    if (*role.capacity != api::Capacity::kOnDemand) TolerateSpot(settings, spec);
  }
  const api::ZoneChoice zone =
      job.spec.placement.value_or(api::PodPlacement{}).zone.value_or(api::ZoneChoice::kPrefer);
  const json own = {{api::kJobUidLabel, job.metadata.uid}};
  const bool near = zone != api::ZoneChoice::kAny;
  const bool with_others = role.type == api::RoleType::kGpuWorker && role.replicas > 1;
  if (!near && !with_others) return;
  json& pod_affinity = MutableObject(MutableObject(spec, "affinity"), "podAffinity");
  if (zone == api::ZoneChoice::kPrefer) {
    PreferNear(PodsOf(own, api::kZoneLabel), kSameZoneWeight, pod_affinity);
  } else if (zone == api::ZoneChoice::kSame) {
    MutableList(pod_affinity, kRequired).push_back(PodsOf(own, api::kZoneLabel));
  }
  if (with_others) {
    json ranks = own;
    ranks[api::kRoleLabel] = role.name;
    PreferNear(PodsOf(ranks, kHostLabel), kSameHostWeight, pod_affinity);
  }
}

void KeepFromConsolidation(const api::Role& role, json& annotations) {
  if (role.type == api::RoleType::kCpuWorker) return;
  SetDefault(annotations, "karpenter.sh/do-not-disrupt", "true");
  SetDefault(annotations, "cluster-autoscaler.kubernetes.io/safe-to-evict", "false");
}

}  // namespace hetero::children
