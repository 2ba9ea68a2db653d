#include "operator/plan/role_counts.h"

#include "absl/strings/str_cat.h"
#include "operator/plan/members.h"

namespace hetero::plan {
namespace {

const api::RoleCounts* Earlier(const Pass& pass, const std::string& role) {
  for (const api::RoleCounts& counts : pass.status.role_statuses) {
    if (counts.name == role) return &counts;
  }
  return nullptr;
}

// Without a word from the head of this attempt the last number stands: its stream is broken, or a
// new operator has not heard it yet.
int32_t Registered(const Pass& pass, const api::Role& role, const api::RoleCounts* earlier) {
  if (pass.paused) return 0;
  const HeadReport* report = pass.Report();
  if (report != nullptr && report->connected) {
    if (role.type == api::RoleType::kHead) return 1;
    const auto members = report->roles.find(role.name);
    if (members != report->roles.end()) return members->second.registered;
  }
  const bool same_attempt = pass.before.attempt == pass.status.attempt;
  return earlier != nullptr && same_attempt ? earlier->registered : 0;
}

void CountPod(const Pass& pass, const Slot& slot, api::RoleCounts& counts) {
  const ObservedPod& pod = *slot.pod;
  ++counts.created;
  if (pod.succeeded()) {
    ++counts.succeeded;
  } else if (pod.failed()) {
    ++counts.failed;
  } else if (HasStarted(pass, slot) && !pass.status.finished()) {
    ++counts.running;
  }
}

}  // namespace

api::RoleCounts& CountsOf(api::JobStatus& status, const std::string& role) {
  for (api::RoleCounts& counts : status.role_statuses) {
    if (counts.name == role) return counts;
  }
  status.role_statuses.emplace_back().name = role;
  return status.role_statuses.back();
}

void CountRoles(Pass& pass) {
  std::vector<api::RoleCounts> all;
  int32_t registered = 0, desired = 0;
  for (const api::Role& role : pass.spec.roles) {
    const api::RoleCounts* earlier = Earlier(pass, role.name);
    api::RoleCounts& counts = all.emplace_back();
    counts.name = role.name;
    counts.desired = pass.Wanted(role);
    counts.restarts = earlier == nullptr ? 0 : earlier->restarts;
    counts.registered = Registered(pass, role, earlier);
    for (const Slot& slot : pass.slots) {
      if (slot.role == &role && slot.pod != nullptr) CountPod(pass, slot, counts);
    }
    if (role.type == api::RoleType::kHead) continue;
    registered += counts.registered;
    desired += counts.desired;
  }
  pass.status.role_statuses = std::move(all);
  pass.status.registered = absl::StrCat(registered, "/", desired);
}

}  // namespace hetero::plan
