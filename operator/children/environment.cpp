#include "operator/children/environment.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "operator/children/role_type.h"
#include "operator/children/template_json.h"

namespace hetero::children {
namespace {

using nlohmann::json;

constexpr char kTerminationLog[] = "/dev/termination-log";  // Kubernetes' default

json Variable(const char* name, const std::string& value) {
  return {{"name", name}, {"value", value}};
}

json FromField(const char* name, const char* field_path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", field_path}}}}}};
}

void AddIdentity(const api::HeteroTrainingJob& job, const PodSlot& slot, json& variables) {
  variables.push_back(Variable("HETERO_JOB_NAME", job.metadata.name));
  variables.push_back(Variable("HETERO_JOB_UID", job.metadata.uid));
  variables.push_back(Variable("HETERO_NAMESPACE", job.metadata.name_space));
  variables.push_back(Variable("HETERO_ROLE", slot.role->name));
  variables.push_back(Variable("HETERO_ROLE_TYPE", RoleTypeName(slot.role->type)));
  variables.push_back(Variable("HETERO_INDEX", absl::StrCat(slot.index)));
  variables.push_back(Variable("HETERO_ATTEMPT", absl::StrCat(slot.attempt)));
  variables.push_back(Variable("HETERO_INCARNATION", absl::StrCat(slot.incarnation)));
  variables.push_back(Variable("HETERO_HEAD_ADDRESS", slot.head_address));
  variables.push_back(FromField("HETERO_POD_IP", "status.podIP"));
  variables.push_back(FromField("HETERO_NODE_NAME", "spec.nodeName"));
}

void AddTrust(const api::HeteroTrainingJob& job, const PodSlot& slot, json& variables) {
  if (job.spec.network.tls == api::Switch::kDisabled) {
    variables.push_back(Variable("HETERO_TLS", "plain-text"));
    return;
  }
  const auto path = [](const char* folder, const std::string& file) {
    return absl::StrCat(folder, "/", file);
  };
  const api::RoleType type = slot.role->type;
  variables.push_back(Variable("HETERO_TLS_CA", path(kConfigFolder, "ca.crt")));
  variables.push_back(Variable("HETERO_TLS_CERTIFICATE", path(kTlsFolder, CertificateKey(type))));
  variables.push_back(Variable("HETERO_TLS_KEY", path(kTlsFolder, PrivateKeyKey(type))));
  if (type == api::RoleType::kHead) {
    variables.push_back(Variable("HETERO_TLS_OPERATOR_CA", path(kConfigFolder, "operator-ca.crt")));
  }
}

}  // namespace

void SetEnvironment(const api::HeteroTrainingJob& job, const PodSlot& slot, json& container) {
  json variables = json::array();
  AddIdentity(job, slot, variables);
  AddTrust(job, slot, variables);
  // Without a CPU limit the process sees all cores of its node; the request says what is its own.
  variables.push_back({{"name", "HETERO_CPU_REQUEST_MILLICORES"},
                       {"valueFrom",
                        {{"resourceFieldRef",
                          {{"containerName", kRuntimeContainer},
                           {"resource", "requests.cpu"},
                           {"divisor", "1m"}}}}}});
  const std::string log = TextAt(container, "terminationMessagePath");
  variables.push_back(Variable("HETERO_TERMINATION_LOG", log.empty() ? kTerminationLog : log));
  for (const json& given : ListAt(container, "env")) {
    if (absl::StartsWith(TextAt(given, "name"), kReservedPrefix)) continue;
    variables.push_back(given);
  }
  container["env"] = std::move(variables);
}

}  // namespace hetero::children
