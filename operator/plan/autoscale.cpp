#include "operator/plan/autoscale.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "api/reasons.h"
#include "operator/plan/role_counts.h"

namespace hetero::plan {
namespace {

bool Scales(const api::Spec& spec, const api::Role& role) {
  return spec.autoscaling == api::Switch::kEnabled && role.type == api::RoleType::kCpuWorker;
}

int32_t WithinBounds(const api::Role& role, int32_t replicas) {
  const int32_t least = role.min_replicas.value_or(role.replicas);
  const int32_t most = std::max(least, role.max_replicas.value_or(role.replicas));
  return std::clamp(replicas, least, most);
}

}  // namespace

int32_t WantedReplicas(const api::Spec& spec, const api::JobStatus& status, const api::Role& role) {
  if (!Scales(spec, role)) return role.replicas;
  for (const api::RoleCounts& counts : status.role_statuses) {
    if (counts.name == role.name) return WithinBounds(role, counts.desired);
  }
  return WithinBounds(role, role.replicas);
}

void Autoscale(Pass& pass) {
  const HeadReport* report = pass.Report();
  if (report == nullptr || !report->connected || report->state != HeadReport::State::kRunning) {
    return;
  }
  for (const api::Role& role : pass.spec.roles) {
    const auto sizing = report->sizing.find(role.name);
    if (!Scales(pass.spec, role) || sizing == report->sizing.end()) continue;
    const int32_t before = pass.Wanted(role);
    const int32_t wanted = WithinBounds(role, sizing->second.needed);
    if (wanted == before) continue;
    CountsOf(pass.status, role.name).desired = wanted;
    std::string note = absl::StrCat("Role ", role.name, ": from ", before, " to ", wanted,
                                    wanted == 1 ? " replica" : " replicas");
    if (!sizing->second.reason.empty()) absl::StrAppend(&note, ": ", sizing->second.reason);
    pass.AddEvent(false, api::event::kScaled, "Scale", std::move(note));
  }
}

}  // namespace hetero::plan
