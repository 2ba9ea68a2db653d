#pragma once

#include "api/enums.h"
#include "api/field_table.h"
#include "api/job_status.h"

// Every field of the status, by type, as fields.h has those of the manifest. crds/ says the same by
// hand; tests/unit/api/status_schema_test.cpp compares the two. Internal to api.
namespace hetero::api {

template <>
struct EnumNames<ConditionType> {
  using enum ConditionType;
  static constexpr NamedValues<ConditionType, kConditionTypes> Values() {
    return {{{kFailed, "Failed"},
             {kSucceeded, "Succeeded"},
             {kSuspended, "Suspended"},
             {kQueued, "Queued"},
             {kStalled, "Stalled"},
             {kRestarting, "Restarting"},
             {kRunning, "Running"},
             {kRegistered, "Registered"},
             {kPodsCreated, "PodsCreated"},
             {kCheckpointFailing, "CheckpointFailing"},
             {kSpecIgnored, "SpecIgnored"}}};
  }
};

template <>
struct EnumNames<ConditionStatus> {
  using enum ConditionStatus;
  static constexpr NamedValues<ConditionStatus, 3> Values() {
    return {{{kTrue, "True"}, {kFalse, "False"}, {kUnknown, "Unknown"}}};
  }
};

inline constexpr char kConditionReason[] = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";

constexpr Limits Text(int max_length, Presence presence = Presence::kOptional) {
  return {.presence = presence, .max_length = max_length};
}
constexpr Limits ListOf(int max_items, int max_length = 0) {
  return {.max_items = max_items, .max_length = max_length};
}
inline constexpr Limits kTime = Text(64);
inline constexpr Limits kCount{.min = 0};

constexpr auto FieldsOf(const Condition*) {
  using C = Condition;
  constexpr Limits kReason{
      .presence = Presence::kRequired, .max_length = 1024, .pattern = kConditionReason};
  return std::make_tuple(
      F("type", &C::type, Limits{.presence = Presence::kRequired}),
      F("status", &C::status, Limits{.presence = Presence::kRequired}),
      F("observedGeneration", &C::observed_generation, kCount),
      F("lastTransitionTime", &C::last_transition_time, Text(64, Presence::kRequired)),
      F("reason", &C::reason, kReason),
      F("message", &C::message, Text(32768, Presence::kRequired)));
}

constexpr auto FieldsOf(const RoleCounts*) {
  using R = RoleCounts;
  return std::make_tuple(F("name", &R::name, Text(20, Presence::kRequired)),
                         F("desired", &R::desired, kCount), F("created", &R::created, kCount),
                         F("running", &R::running, kCount), F("registered", &R::registered, kCount),
                         F("succeeded", &R::succeeded, kCount), F("failed", &R::failed, kCount),
                         F("restarts", &R::restarts, kCount));
}

constexpr auto FieldsOf(const JobProgress*) {
  using P = JobProgress;
  return std::make_tuple(
      F("epoch", &P::epoch), F("step", &P::step), F("totalSteps", &P::total_steps),
      F("samplesPerSecond", &P::samples_per_second), F("dataWaitPercent", &P::data_wait_percent),
      F("loss", &P::loss), F("etaSeconds", &P::eta_seconds),
      F("lastUpdateTime", &P::last_update_time, kTime));
}

constexpr auto FieldsOf(const JobResult*) {
  using R = JobResult;
  return std::make_tuple(F("loss", &R::loss), F("accuracy", &R::accuracy),
                         F("samplesPerSecond", &R::samples_per_second), F("steps", &R::steps),
                         F("streamDigest", &R::stream_digest, Text(64)),
                         F("costDollars", &R::cost_dollars),
                         F("reportURI", &R::report_uri, Text(1024)),
                         F("checkpointURI", &R::checkpoint_uri, Text(1024)));
}

constexpr auto FieldsOf(const FirstFailure*) {
  using E = FirstFailure;
  return std::make_tuple(F("pod", &E::pod, Text(253)), F("role", &E::role, Text(20)),
                         F("node", &E::node, Text(253)), F("exitCode", &E::exit_code),
                         F("signal", &E::signal), F("reason", &E::reason, Text(1024)),
                         F("message", &E::message, Text(4096)), F("time", &E::time, kTime));
}

constexpr auto FieldsOf(const AttemptImages*) {
  using I = AttemptImages;
  return std::make_tuple(F("runtime", &I::runtime, Text(1024)),
                         F("trainer", &I::trainer, Text(1024)));
}

constexpr auto FieldsOf(const CostLedger*) {
  using L = CostLedger;
  return std::make_tuple(
      F("gonePods", &L::gone_pods), F("gonePriceless", &L::gone_priceless),
      F("goneSeconds", &L::gone_seconds), F("goneAmount", &L::gone_amount),
      F("goneOnDemand", &L::gone_on_demand), F("pods", &L::pods), F("newest", &L::newest),
      F("billed", &L::billed), F("priceless", &L::priceless), F("seconds", &L::seconds),
      F("amount", &L::amount), F("onDemand", &L::on_demand), F("open", &L::open),
      F("rate", &L::rate), F("dearest", &L::dearest), F("since", &L::since, kTime),
      F("sinceIncarnation", &L::since_incarnation), F("trained", &L::trained), F("over", &L::over),
      F("uncertainSeconds", &L::uncertain_seconds), F("uncertain", &L::uncertain));
}

constexpr auto FieldsOf(const RoleCost*) {
  using R = RoleCost;
  return std::make_tuple(F("name", &R::name, Text(20, Presence::kRequired)),
                         F("pods", &R::pods, kCount), F("podHours", &R::pod_hours, kCount),
                         F("dollars", &R::dollars, kCount),
                         F("onDemandDollars", &R::on_demand_dollars, kCount),
                         F("waitingDollars", &R::waiting_dollars, kCount),
                         F("pricelessPods", &R::priceless_pods, kCount), F("ledger", &R::ledger));
}

constexpr auto FieldsOf(const JobCost*) {
  using C = JobCost;
  return std::make_tuple(
      F("dollars", &C::dollars, kCount), F("onDemandDollars", &C::on_demand_dollars, kCount),
      F("waitingDollars", &C::waiting_dollars, kCount),
      F("perMillionSamples", &C::per_million_samples, kCount),
      F("uncertainDollars", &C::uncertain_dollars, kCount),
      F("uncertainSeconds", &C::uncertain_seconds, kCount),
      F("pricelessPods", &C::priceless_pods, kCount), F("asOf", &C::as_of, kTime),
      F("incarnation", &C::incarnation), F("roles", &C::roles, ListOf(16)));
}

constexpr auto FieldsOf(const JobFinding*) {
  using J = JobFinding;
  return std::make_tuple(F("rule", &J::rule, Text(63, Presence::kRequired)),
                         F("message", &J::message, Text(1024)), F("remedy", &J::remedy, Text(1024)),
                         F("field", &J::field, Text(256)), F("member", &J::member, Text(64)),
                         F("seconds", &J::seconds, kCount), F("dollars", &J::dollars, kCount),
                         F("since", &J::since, kTime), F("active", &J::active));
}

constexpr auto FieldsOf(const JobStatus*) {
  using S = JobStatus;
  return std::make_tuple(
      F("observedGeneration", &S::observed_generation, kCount),
      F("conditions", &S::conditions, ListOf(16)), F("startTime", &S::start_time, kTime),
      F("completionTime", &S::completion_time, kTime), F("attempt", &S::attempt, kCount),
      F("restarts", &S::restarts, kCount), F("scriptRestarts", &S::script_restarts, kCount),
      F("specHash", &S::spec_hash, Text(64)), F("images", &S::images),
      F("uncounted", &S::uncounted, ListOf(1024, 128)),
      F("headAddress", &S::head_address, Text(512)), F("history", &S::history, Text(8192)),
      F("registered", &S::registered, Text(32)), F("roleStatuses", &S::role_statuses, ListOf(8)),
      F("progress", &S::progress), F("result", &S::result), F("cost", &S::cost),
      F("firstFailure", &S::first_failure), F("findings", &S::findings, ListOf(kMostFindings)),
      F("findingsTold", &S::findings_told, ListOf(kMostToldFindings, 128)));
}

}  // namespace hetero::api
