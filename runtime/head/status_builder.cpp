#include "runtime/head/status_builder.h"

#include "runtime/head/verdict.h"

namespace hetero::head {
namespace {

constexpr int kNamedMissing = 5;
constexpr int kToldFindings = 5;

// With autoscaling the manifest's number is only where a role begins.
int32_t Desired(const JobRecord& record, const RolePlan::Role& role) {
  if (record.job.spec.autoscaling == api::Switch::kEnabled) {
    for (const v1::RoleSizing& sizing : record.sizing) {
      if (sizing.role() == role.name) return sizing.needed_replicas();
    }
  }
  return role.desired;
}

v1::RoleStatus BuildRole(const JobRecord& record, const RolePlan::Role& role) {
  v1::RoleStatus status;
  const int32_t desired = Desired(record, role);
  status.set_name(role.name);
  status.set_desired(desired);
  int32_t registered = 0;
  for (int32_t index = 0; index < role.limit; ++index) {
    bool whole = true;
    for (int32_t local = 0; local < role.local_ranks; ++local) {
      const auto member = record.members.find({role.name, index, local});
      const bool there = member != record.members.end() && member->second.registered();
      if (there && member->second.unfit.empty()) continue;
      whole = false;
      if (index < desired && status.missing_size() < kNamedMissing) {
        status.add_missing(MemberName(role, index, local));
      }
    }
    if (whole) ++registered;
  }
  status.set_registered(registered);
  return status;
}

// At the pace of rank 0's process.
double RemainingSeconds(const JobRecord& record) {
  const MemberRecord* first = FindRank(record, 0);
  if (first == nullptr) return 0;
  const v1::Progress& progress = first->progress;
  if (progress.step() <= 0 || progress.total_steps() <= progress.step()) return 0;
  const int64_t own = progress.step() - progress.first_step();
  if (own <= 0) return 0;
  const double per_step = progress.train_seconds() / static_cast<double>(own);
  return per_step * static_cast<double>(progress.total_steps() - progress.step());
}

}  // namespace

v1::JobStatus BuildStatus(const JobRecord& record, const RolePlan& plan) {
  v1::JobStatus status;
  status.set_state(record.state);
  status.set_generation(record.generation);
  for (const RolePlan::Role& role : plan.roles()) *status.add_roles() = BuildRole(record, role);
  *status.mutable_progress() = JobProgress(record);
  if (!record.evaluations.empty()) *status.add_evaluations() = record.evaluations.back();
  status.set_script_restarts(record.script_restarts);
  if (record.first_failure) {
    *status.mutable_first_failure() = *record.first_failure;
  } else if (record.script_failure && !record.ended) {
    *status.mutable_first_failure() = *record.script_failure;
  }
  if (!record.ended) status.set_eta_seconds(RemainingSeconds(record));
  for (const auto& [key, member] : record.members) {
    v1::MemberStatus* entry = status.add_members();
    entry->set_role(key.role);
    entry->set_index(key.index);
    entry->set_local_rank(key.local_rank);
    entry->set_connected(member.connected());
    entry->set_pid(member.hello.pid());
    entry->set_incarnation(member.hello.identity().incarnation());
    entry->set_lost(!member.finished && (member.lost || member.process_gone));
  }
  for (const HeldFinding& held : record.findings) {
    if (status.findings_size() == kToldFindings) break;
    *status.add_findings() = held.finding;
  }
  status.set_notices_fingerprint(record.notices_fingerprint);
  status.set_checkpoint_problem(status.progress().checkpoint_problem());
  for (const v1::RoleSizing& sizing : record.sizing) *status.add_sizing() = sizing;
  status.set_verdict(Verdict(record));
  return status;
}

}  // namespace hetero::head
