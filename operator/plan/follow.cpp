#include "operator/plan/follow.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "api/ports.h"

namespace hetero::plan {
namespace {

std::string Address(const Pass& pass, int port) {
  const auto& service = pass.seen.service;
  if (service == nullptr || service->deleting) return {};
  const std::string& ip = service->cluster_ip;
  if (ip.empty() || ip == "None") return {};
  return ip.find(':') == std::string::npos ? absl::StrCat(ip, ":", port)
                                           : absl::StrCat("[", ip, "]:", port);
}

void CountMembers(const std::vector<api::Role>& roles, HeadTarget& target) {
  for (const api::Role& role : roles) {
    const int32_t most = std::max(role.replicas, role.max_replicas.value_or(0));
    target.replicas[role.name] = most;
    target.processes += int64_t{most} * std::max(1, role.ranks_per_replica());
  }
}

}  // namespace

std::string HeadJoinAddress(const Pass& pass) { return Address(pass, api::kHeadPort); }

void FollowHead(Pass& pass) {
  const ObservedPod* head = pass.HeadPod();
  const std::string address = Address(pass, api::kStatusPort);
  if (head == nullptr || address.empty() || head->runtime == ObservedPod::Runtime::kWaiting) return;
  HeadTarget target;
  target.address = address;
  target.job_uid = pass.metadata.uid;
  target.attempt = pass.status.attempt;
  target.pod_uid = head->uid;
  CountMembers(pass.spec.roles, target);
  target.incarnation = head->incarnation;
  // The ConfigMap is that of the attempt; while it is stopped, the spec may be the next one's.
  if (pass.seen.config_map != nullptr) target.ca_pem = pass.seen.config_map->ca_pem;
  // Without the authority there is nobody to trust.
  if (target.ca_pem.empty() && pass.spec.network.tls == api::Switch::kEnabled) return;
  pass.plan.follow = std::move(target);
}

}  // namespace hetero::plan
