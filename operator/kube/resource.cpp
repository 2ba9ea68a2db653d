#include "operator/kube/resource.h"

#include "base/json_access.h"

namespace hetero::kube {

const Resource kPods{"", "v1", "pods"};
const Resource kServices{"", "v1", "services"};
const Resource kConfigMaps{"", "v1", "configmaps"};
const Resource kSecrets{"", "v1", "secrets"};
const Resource kNodes{"", "v1", "nodes", /*namespaced=*/false};
const Resource kNamespaces{"", "v1", "namespaces", /*namespaced=*/false};
const Resource kNetworkPolicies{"networking.k8s.io", "v1", "networkpolicies"};
const Resource kLeases{"coordination.k8s.io", "v1", "leases"};
const Resource kEvents{"events.k8s.io", "v1", "events"};

ObjectKey ObjectKey::Parse(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {"", std::string(text)};
  return {std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

ObjectKey ObjectKey::Of(const nlohmann::json& object) {
  const nlohmann::json& metadata = base::FieldOf(object, "metadata");
  return {base::TextOf(metadata, "namespace"), base::TextOf(metadata, "name")};
}

std::string Escape(std::string_view text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string escaped;
  for (const unsigned char c : text) {
    if (kPlain.find(static_cast<char>(c)) != std::string_view::npos) {
      escaped += static_cast<char>(c);
    } else {
      escaped += {'%', kHex[c >> 4], kHex[c & 15]};
    }
  }
  return escaped;
}

std::string ResourcePath(const Resource& resource, const std::string& name_space,
                         const std::string& name, const std::string& subresource) {
  std::string path = resource.group.empty() ? "/api/" : "/apis/" + Escape(resource.group) + "/";
  path += Escape(resource.version);
  if (resource.namespaced && !name_space.empty()) path += "/namespaces/" + Escape(name_space);
  path += "/" + Escape(resource.plural);
  if (!name.empty()) path += "/" + Escape(name);
  if (!subresource.empty()) path += "/" + Escape(subresource);
  return path;
}

Query& Query::Add(std::string_view name, std::string_view value) {
  if (value.empty()) return *this;
  text_ += text_.empty() ? "?" : "&";
  text_.append(name).append("=").append(Escape(value));
  return *this;
}

}  // namespace hetero::kube
