#include "runtime/head/history_restore.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "runtime/head/fault_log.h"
#include "runtime/head/text_limits.h"

namespace hetero::head {
namespace {

constexpr char kHead[] = "head";

base::Duration AtLeastZero(base::Duration duration) {
  return std::max(duration, base::Duration::zero());
}

// A time of another process, by this one's steady clock; none in the future.
base::Instant Since(base::WallTime time, Moment now) {
  return now.steady - AtLeastZero(now.wall - time);
}

void RestoreAttempts(const v1::History& history, const AttemptInfo& attempt, double age,
                     JobRecord& record) {
  for (const v1::AttemptHistory& entry : history.attempts()) {
    record.attempts.push_back({entry.number(), entry.begin(), entry.end(), entry.cause()});
  }
  const int32_t number = std::max(attempt.number, 1);
  if (!record.attempts.empty() && record.attempts.back().number == number) return;
  const double earliest = record.attempts.empty() ? 0 : record.attempts.back().end;
  const double began = base::ToSeconds(attempt.began - record.created);
  record.attempts.push_back({.number = number,
                             .begin = std::max(earliest, std::min(began, age)),
                             .cause = attempt.cause});
}

void RestoreFaults(const v1::History& history, Moment now, JobRecord& record) {
  for (const v1::FaultHistory& entry : history.faults()) {
    Fault& fault = record.faults.emplace_back();
    fault.time = base::WallTime(std::chrono::duration_cast<base::WallTime::duration>(
        std::chrono::nanoseconds(entry.unix_ns())));
    fault.since = Since(fault.time, now);
    fault.what = entry.what();
    fault.member = entry.member();
    fault.incarnation = entry.incarnation();
    fault.over = entry.over();
    if (entry.has_recovery_seconds()) fault.recovery_seconds = entry.recovery_seconds();
  }
  record.past.faults_left_out = history.faults_left_out();
}

// One that was not saved is not waited for any longer, unless its notice is told again: who writes
// checkpoints now has not been told of it.
void RestoreDisruptions(const v1::History& history, Moment now, JobRecord& record) {
  for (const v1::DisruptionHistory& entry : history.disruptions()) {
    Disruption& disruption = record.disruptions.emplace_back();
    disruption.time = base::WallTime(std::chrono::duration_cast<base::WallTime::duration>(
        std::chrono::nanoseconds(entry.unix_ns())));
    disruption.since = Since(disruption.time, now);
    disruption.member = entry.member();
    disruption.incarnation = entry.incarnation();
    disruption.sign = entry.sign();
    if (!entry.has_checkpoint_seconds()) continue;
    disruption.checkpoint_seconds = entry.checkpoint_seconds();
    disruption.checkpoint_step = entry.checkpoint_step();
  }
  record.steps_done = {.furthest = history.steps().furthest(),
                       .redone = history.steps().redone(),
                       .incarnation = history.steps().incarnation(),
                       .before = history.steps().before(),
                       .counted = history.steps().counted()};
}

// What held does so again when it is found again.
void RestoreFindings(const v1::History& history, JobRecord& record) {
  for (const v1::Finding& entry : history.findings()) {
    if (record.findings.size() >= kMostFindings) return;
    v1::Finding& finding = record.findings.emplace_back().finding;
    finding = entry;
    finding.set_active(false);
    LimitText(kMaxText, *finding.mutable_message());
    LimitText(kMaxText, *finding.mutable_remedy());
  }
}

}  // namespace

void RestoreHistory(const v1::History& history, const AttemptInfo& attempt, Moment now,
                    JobRecord& record) {
  const bool first_head = history.attempts().empty();
  const bool same_attempt =
      !first_head && history.attempts(history.attempts_size() - 1).number() == attempt.number;
  record.began = now.steady;
  record.age = std::max(AtLeastZero(now.wall - record.created),
                        base::FromSeconds(history.elapsed_seconds()));
  RestoreAttempts(history, attempt, base::ToSeconds(record.age), record);
  RestoreFaults(history, now, record);
  RestoreDisruptions(history, now, record);
  if (history.has_startup_seconds()) record.startup_seconds = history.startup_seconds();
  record.checkpoint_uri = history.checkpoint_uri();
  record.irreproducible = history.irreproducible();
  LimitText(kMaxListedText, record.irreproducible);
  record.reached_step = history.reached_step();
  record.checkpoints = std::max<int64_t>(history.checkpoints(), 0);
  RestoreFindings(history, record);
  record.evaluations.assign(history.evaluations().begin(), history.evaluations().end());
  for (const v1::BadSampleReport& sample : history.bad_samples()) record.bad_samples.Add(sample);
  record.script_failures.assign(history.script_failures().begin(), history.script_failures().end());
  Past& past = record.past;
  past.same_attempt = same_attempt;
  past.script_restarts = history.earlier_script_restarts();
  if (same_attempt) {
    record.script_restarts = history.script_restarts();
  } else {
    past.script_restarts += history.script_restarts();
  }
  past.elapsed_seconds = history.elapsed_seconds();
  past.generation = history.generation();
  past.attempts_left_out_seconds = history.attempts_left_out_seconds();
  past.ceiling_samples_per_second = history.ceiling_samples_per_second();
  past.losses.assign(history.losses().begin(), history.losses().end());
  for (const v1::RoleHistory& entry : history.roles()) {
    v1::RoleHistory& role = past.roles.emplace_back(entry);
    // They tell it to this head too, each under its name.
    if (!same_attempt) AddCounters(entry.living(), *role.mutable_sum());
    role.clear_living();
  }
  for (const v1::MemberHistory& member : history.members()) {
    past.members[{member.role(), member.index(), member.local_rank()}] = member;
  }
  past.head_fault = FindOpenFault(record, kHead);
  if (same_attempt && !past.head_fault) {
    past.head_fault = OpenFault(kHead, 0, "the head was lost", now, record);
  }
}

void DateHeadLoss(base::Duration headless, Moment now, JobRecord& record) {
  if (!record.past.head_fault) return;
  Fault& fault = record.faults[*record.past.head_fault];
  const base::Duration since_written =
      AtLeastZero(record.age - base::FromSeconds(record.past.elapsed_seconds)) +
      (now.steady - record.began);
  const base::Duration missed = std::clamp(headless, base::Duration::zero(), since_written);
  if (now.steady - missed >= fault.since) return;
  fault.since = now.steady - missed;
  fault.time = now.wall - std::chrono::duration_cast<base::WallTime::duration>(missed);
}

void CloseHeadLoss(Moment now, JobRecord& record) {
  if (!record.past.head_fault) return;
  CloseFault(*record.past.head_fault, kReplaced, /*over=*/true, now, record);
  record.past.head_fault.reset();
}

bool TakeUpPlace(const MemberKey& key, const v1::Identity& identity, bool ending, Moment now,
                 JobRecord& record, MemberRecord& member) {
  const auto found = record.past.members.find(key);
  if (found == record.past.members.end()) {
    member.open_fault = FindOpenFault(record, member.name);
    return true;
  }
  const v1::MemberHistory& past = found->second;
  if (identity.incarnation() < past.incarnation()) return false;
  member.open_fault = FindOpenFault(record, member.name);
  member.earlier = past.earlier();
  member.earlier_rank = FromHistory(past.rank_earlier());
  member.restarts = past.restarts();
  if (identity.incarnation() > past.incarnation()) {
    AddCounters(past.now(), member.earlier);
    AddTotals(FromHistory(past.rank_now()), member.earlier_rank);
    // A new attempt has new processes: of those that were well, none was replaced.
    const bool missed = past.attempt() == identity.attempt() && !past.left();
    if (missed || member.open_fault) ++member.restarts;
    if (missed && !member.open_fault && !ending) {
      const size_t fault = OpenFault(member.name, past.incarnation(),
                                     absl::StrCat(member.name, " was ", kReplaced), now, record);
      record.faults[fault].over = true;
    }
  }
  record.past.members.erase(found);
  return true;
}

}  // namespace hetero::head
