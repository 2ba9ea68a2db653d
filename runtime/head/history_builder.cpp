#include "runtime/head/history_builder.h"

#include <algorithm>

namespace hetero::head {
namespace {

void AddAttempts(const JobRecord& record, double age, v1::History& history) {
  for (const Attempt& attempt : record.attempts) {
    v1::AttemptHistory& entry = *history.add_attempts();
    entry.set_number(attempt.number);
    entry.set_begin(attempt.begin);
    entry.set_end(&attempt == &record.attempts.back() ? age : attempt.end);
    entry.set_cause(attempt.cause);
  }
  history.set_attempts_left_out_seconds(record.past.attempts_left_out_seconds);
}

void AddFaults(const JobRecord& record, v1::History& history) {
  for (const Fault& fault : record.faults) {
    v1::FaultHistory& entry = *history.add_faults();
    entry.set_unix_ns(UnixNs(fault.time));
    entry.set_member(fault.member);
    entry.set_incarnation(fault.incarnation);
    entry.set_what(fault.what);
    entry.set_over(fault.over);
    if (fault.recovery_seconds) entry.set_recovery_seconds(*fault.recovery_seconds);
  }
  history.set_faults_left_out(record.past.faults_left_out);
}

void AddDisruptions(const JobRecord& record, v1::History& history) {
  for (const Disruption& disruption : record.disruptions) {
    v1::DisruptionHistory& entry = *history.add_disruptions();
    entry.set_unix_ns(UnixNs(disruption.time));
    entry.set_member(disruption.member);
    entry.set_incarnation(disruption.incarnation);
    entry.set_sign(disruption.sign);
    if (!disruption.checkpoint_seconds) continue;
    entry.set_checkpoint_seconds(*disruption.checkpoint_seconds);
    entry.set_checkpoint_step(disruption.checkpoint_step);
  }
}

void AddMembers(const JobRecord& record, v1::History& history) {
  for (const auto& [key, member] : record.members) {
    v1::MemberHistory& entry = *history.add_members();
    entry.set_role(key.role);
    entry.set_index(key.index);
    entry.set_local_rank(key.local_rank);
    entry.set_incarnation(member.hello.identity().incarnation());
    entry.set_attempt(member.hello.identity().attempt());
    entry.set_left(member.finished && member.finished->ok());
    entry.set_ended(member.finished || member.process_gone);
    entry.set_restarts(member.restarts);
    entry.set_node(member.hello.node());
    *entry.mutable_now() = member.counters;
    *entry.mutable_earlier() = member.earlier;
    if (!member.trainer()) continue;
    *entry.mutable_rank_now() = ToHistory(TotalsOf(member.progress));
    if (member.earlier_rank.train_seconds > 0) {
      *entry.mutable_rank_earlier() = ToHistory(member.earlier_rank);
    }
  }
  for (const auto& [key, member] : record.past.members) *history.add_members() = member;
  for (const v1::RoleHistory& role : record.past.roles) *history.add_roles() = role;
}

}  // namespace

v1::History BuildHistory(const JobRecord& record, const std::string& run, Moment now) {
  v1::History history;
  const double age = AgeAt(record, now.steady);
  history.set_run(run);
  history.set_elapsed_seconds(age);
  history.set_generation(std::max(record.generation, record.past.generation));
  history.set_reached_step(record.reached_step);
  history.set_script_restarts(record.script_restarts);
  history.set_earlier_script_restarts(record.past.script_restarts);
  for (const v1::ScriptFailureHistory& failure : record.script_failures) {
    *history.add_script_failures() = failure;
  }
  if (record.startup_seconds) history.set_startup_seconds(*record.startup_seconds);
  history.set_checkpoint_uri(record.checkpoint_uri);
  history.set_irreproducible(record.irreproducible);
  history.set_ceiling_samples_per_second(JobProgress(record).ceiling_samples_per_second());
  AddAttempts(record, age, history);
  AddFaults(record, history);
  AddDisruptions(record, history);
  history.mutable_steps()->set_furthest(record.steps_done.furthest);
  history.mutable_steps()->set_redone(record.steps_done.redone);
  history.mutable_steps()->set_incarnation(record.steps_done.incarnation);
  history.mutable_steps()->set_before(record.steps_done.before);
  history.mutable_steps()->set_counted(record.steps_done.counted);
  for (const HeldFinding& held : record.findings) *history.add_findings() = held.finding;
  history.set_checkpoints(record.checkpoints);
  AddMembers(record, history);
  for (const v1::EvaluationResult& result : record.evaluations) {
    *history.add_evaluations() = result;
  }
  for (const v1::LossPoint& point : WholeLossCurve(record)) *history.add_losses() = point;
  for (const v1::BadSampleReport& sample : record.bad_samples.first()) {
    *history.add_bad_samples() = sample;
  }
  return history;
}

}  // namespace hetero::head
