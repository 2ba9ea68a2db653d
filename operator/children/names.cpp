#include "operator/children/names.h"

#include "absl/strings/str_cat.h"
#include "api/labels.h"

namespace hetero::children {

std::string ServiceName(const api::Metadata& job) { return absl::StrCat(job.name, "-head"); }

std::string SecretName(const api::Metadata& job) {
  return absl::StrCat(job.name, "-tls-", job.uid.substr(0, 10));
}

std::string ConfigMapName(const api::Metadata& job) { return absl::StrCat(job.name, "-config"); }

std::string NetworkPolicyName(const api::Metadata& job) { return job.name; }

std::string PodName(const api::Metadata& job, const std::string& role, int index) {
  return absl::StrCat(job.name, "-", role, "-", index);
}

std::string GangWorkloadName(const api::Metadata& job) { return absl::StrCat(job.name, "-gang"); }

std::string ElasticWorkloadName(const api::Metadata& job, const std::string& role, int index) {
  return PodName(job, role, index);
}

std::string PodGroupName(const api::Metadata& job, int attempt) {
  return absl::StrCat(job.name, kPodGroupInfix, attempt);
}

std::string JobSelector(const api::Metadata& job) {
  return absl::StrCat(api::kJobUidLabel, "=", job.uid);
}

std::map<std::string, std::string> ChildLabels(const api::Metadata& job) {
  return {{api::kJobNameLabel, job.name},
          {api::kJobUidLabel, job.uid},
          {api::kManagedByLabel, api::kManagedByValue},
          {"app.kubernetes.io/name", "hetero-training-job"},
          {"app.kubernetes.io/instance", job.name},
          {"app.kubernetes.io/part-of", "hetero-training-job"}};
}

}  // namespace hetero::children
