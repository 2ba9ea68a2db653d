#include "operator/children/environment.h"

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "api/job_resource.h"
#include "api/process_environment.h"
#include "api/role_type.h"
#include "api/storage_keys.h"
#include "base/json_access.h"
#include "base/utf8.h"
#include "operator/children/role_type.h"
#include "operator/children/template_json.h"

namespace hetero::children {
namespace {

using nlohmann::json;
namespace environment = api::environment;

constexpr size_t kMaxCauseBytes = 512;
constexpr char kTerminationLog[] = "/dev/termination-log";  // Kubernetes' default

json Variable(const char* name, const std::string& value) {
  return {{"name", name}, {"value", value}};
}

json FromField(const char* name, const char* field_path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", field_path}}}}}};
}

void AddIdentity(const api::HeteroTrainingJob& job, const PodSlot& slot, json& variables) {
  variables.push_back(Variable(environment::kJobName, job.metadata.name));
  variables.push_back(Variable(environment::kJobUid, job.metadata.uid));
  variables.push_back(Variable(environment::kNamespace, job.metadata.name_space));
  variables.push_back(Variable(environment::kRole, slot.role->name));
  variables.push_back(Variable(environment::kRoleType, api::NameOf(slot.role->type)));
  variables.push_back(Variable(environment::kIndex, absl::StrCat(slot.index)));
  variables.push_back(Variable(environment::kAttempt, absl::StrCat(slot.attempt)));
  variables.push_back(Variable(environment::kIncarnation, absl::StrCat(slot.incarnation)));
  variables.push_back(Variable(environment::kHeadAddress, slot.head_address));
  variables.push_back(FromField(environment::kPodIp, "status.podIP"));
  variables.push_back(FromField(environment::kNodeName, "spec.nodeName"));
}

void AddTrust(const api::HeteroTrainingJob& job, const PodSlot& slot, json& variables) {
  if (job.spec.network.tls == api::Switch::kDisabled) {
    variables.push_back(Variable(environment::kTls, environment::kPlainText));
    return;
  }
  const auto path = [](const char* folder, const std::string& file) {
    return absl::StrCat(folder, "/", file);
  };
  const api::RoleType type = slot.role->type;
  variables.push_back(Variable(environment::kTlsCa, path(kConfigFolder, "ca.crt")));
  variables.push_back(
      Variable(environment::kTlsCertificate, path(kTlsFolder, CertificateKey(type))));
  variables.push_back(Variable(environment::kTlsKey, path(kTlsFolder, PrivateKeyKey(type))));
  if (type == api::RoleType::kHead) {
    variables.push_back(
        Variable(environment::kTlsOperatorCa, path(kConfigFolder, "operator-ca.crt")));
  }
}

// Keys of stores. Optional, so that a pod starts without them and its program can say what is
// missing, and where.
void AddStorageKeys(const api::HeteroTrainingJob& job, json& variables) {
  for (size_t i = 0; i < job.spec.storage.size(); ++i) {
    const std::optional<api::SecretReference>& secret = job.spec.storage[i].secret_ref;
    if (!secret) continue;
    for (const char* key : api::kStorageKeys) {
      variables.push_back(
          {{"name", api::StorageVariable(i, key)},
           {"valueFrom",
            {{"secretKeyRef", {{"name", secret->name}, {"key", key}, {"optional", true}}}}}});
    }
  }
}

// What only a head reads: the past of the job, and its budget. Programs of 0.1.1 would refuse a
// document with that.
void AddForHead(const api::HeteroTrainingJob& job, const PodSlot& slot, json& variables) {
  const auto add = [&variables](const char* name, const std::string& value) {
    if (!value.empty()) variables.push_back(Variable(name, value));
  };
  add(environment::kHistory, slot.history);
  add(environment::kAttemptCause, base::ToUtf8(slot.attempt_cause, kMaxCauseBytes));
  if (slot.role->type == api::RoleType::kHead) {
    add(environment::kMaxDollars, job.spec.run_policy.max_dollars);
  }
}

constexpr char kLogLevel[] = "HETERO_LOG_LEVEL";  // base/log.h

}  // namespace

void SetEnvironment(const api::HeteroTrainingJob& job, const PodSlot& slot, json& container) {
  json variables = json::array();
  AddIdentity(job, slot, variables);
  AddTrust(job, slot, variables);
  AddStorageKeys(job, variables);
  AddForHead(job, slot, variables);
  // Without a CPU limit the process sees all cores of its node; the request says what is its own.
  variables.push_back({{"name", environment::kCpuRequestMillicores},
                       {"valueFrom",
                        {{"resourceFieldRef",
                          {{"containerName", api::kRuntimeContainer},
                           {"resource", "requests.cpu"},
                           {"divisor", "1m"}}}}}});
  const std::string log = base::TextOf(container, "terminationMessagePath");
  variables.push_back(Variable(environment::kTerminationLog, log.empty() ? kTerminationLog : log));
  for (const json& given : base::ListOf(container, "env")) {
    if (IsReserved(base::TextOf(given, "name"))) continue;
    variables.push_back(given);
  }
  container["env"] = std::move(variables);
}

bool IsReserved(const std::string& variable) {
  return absl::StartsWith(variable, environment::kReservedPrefix) && variable != kLogLevel;
}

}  // namespace hetero::children
