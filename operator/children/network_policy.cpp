#include "api/labels.h"
#include "api/ports.h"
#include "operator/children/children.h"
#include "operator/children/names.h"
#include "operator/children/object_metadata.h"

namespace hetero::children {
namespace {

using nlohmann::json;

json NamespaceNamed(const std::string& name) {
  return {{"matchLabels", {{"kubernetes.io/metadata.name", name}}}};
}

json OnlyPort(int port) { return json::array({{{"protocol", "TCP"}, {"port", port}}}); }

}  // namespace

json NetworkPolicy(const api::HeteroTrainingJob& job, const Settings& settings) {
  const json own_pods = {{"matchLabels", {{api::kJobUidLabel, job.metadata.uid}}}};
  json ingress = json::array({{{"from", json::array({{{"podSelector", own_pods}}})}}});
  if (!settings.operator_namespace.empty()) {
    const json from = {{"namespaceSelector", NamespaceNamed(settings.operator_namespace)},
                       {"podSelector", {{"matchLabels", settings.operator_labels}}}};
    ingress.push_back({{"from", json::array({from})}, {"ports", OnlyPort(api::kStatusPort)}});
  }
  if (!settings.metrics_from.empty()) {
    const json from = {{"namespaceSelector", NamespaceNamed(settings.metrics_from)}};
    ingress.push_back({{"from", json::array({from})}, {"ports", OnlyPort(api::kMetricsPort)}});
  }
  return {
      {"apiVersion", "networking.k8s.io/v1"},
      {"kind", "NetworkPolicy"},
      {"metadata", ObjectMetadata(job, NetworkPolicyName(job.metadata))},
      {"spec", {{"podSelector", own_pods}, {"policyTypes", {"Ingress"}}, {"ingress", ingress}}}};
}

}  // namespace hetero::children
