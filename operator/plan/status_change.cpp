#include "operator/plan/status_change.h"

#include <utility>

namespace hetero::plan {
namespace {

// Without what can wait.
api::JobStatus Essence(api::JobStatus status) {
  for (api::Condition& condition : status.conditions) condition.message.clear();
  for (api::RoleCounts& counts : status.role_statuses) {
    counts = {.name = counts.name, .desired = counts.desired};  // pods are made from these
  }
  status.registered.clear();
  status.progress.reset();
  status.findings.clear();
  status.findings_told.clear();
  status.history.clear();
  status.cost.reset();
  return status;
}

}  // namespace

void CompareStatus(Pass& pass) {
  if (pass.status == pass.before) return;
  if (absl::StatusOr<api::JobStatus> stored = api::StatusFromJson(api::StatusToJson(pass.status));
      stored.ok()) {
    pass.status = *std::move(stored);
  }
  pass.plan.write_status = pass.status != pass.before;
  pass.plan.status_is_urgent =
      pass.plan.write_status && Essence(pass.status) != Essence(pass.before);
}

Plan HandsOff(const ObservedJob& job) {
  Plan plan;
  plan.status = job.status;
  return plan;
}

}  // namespace hetero::plan
