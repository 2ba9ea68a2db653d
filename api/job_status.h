#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"

// The status of a HeteroTrainingJob as plain values; field names are the manifest's in snake_case.
// Pure, safe from any thread.
namespace hetero::api {

enum class ConditionType {  // in their order in status.conditions, the most
                            // telling first
  kFailed,
  kSucceeded,
  kSuspended,
  kQueued,
  kStalled,
  kRestarting,
  kRunning,
  kRegistered,
  kPodsCreated,
  kCheckpointFailing,
  kSpecIgnored
};
inline constexpr int kConditionTypes = 11;
enum class ConditionStatus { kTrue, kFalse, kUnknown };

struct Condition {
  ConditionType type = ConditionType::kPodsCreated;
  ConditionStatus status = ConditionStatus::kUnknown;
  int64_t observed_generation = 0;
  base::WallTime last_transition_time;  // whole seconds, as Kubernetes writes them
  std::string reason;                   // CamelCase, never empty
  std::string message;
  bool operator==(const Condition&) const = default;
};

struct RoleCounts {
  std::string name;
  int32_t desired = 0;
  int32_t created = 0;
  int32_t running = 0;
  int32_t registered = 0;
  int32_t succeeded = 0;
  int32_t failed = 0;
  int32_t restarts = 0;
  bool operator==(const RoleCounts&) const = default;
};

struct JobProgress {
  int64_t epoch = 0;
  int64_t step = 0;
  int64_t total_steps = 0;
  double samples_per_second = 0;
  double data_wait_percent = 0;
  double loss = 0;
  int64_t eta_seconds = 0;
  base::WallTime last_update_time;
  bool operator==(const JobProgress&) const = default;
};

// What a finished run came to. Absent means not applicable.
struct JobResult {
  std::optional<double> loss;
  std::optional<double> accuracy;
  std::optional<double> samples_per_second;
  std::optional<int64_t> steps;
  std::string stream_digest;
  std::optional<double> cost_dollars;
  std::string report_uri;
  std::string checkpoint_uri;
  bool operator==(const JobResult&) const = default;
};

struct FirstFailure {
  std::string pod;
  std::string role;
  std::string node;
  std::optional<int32_t> exit_code;
  std::optional<int32_t> signal;
  std::string reason;   // OOMKilled, Error, Evicted, ...
  std::string message;  // last words, at most 3 KiB
  std::optional<base::WallTime> time;
  bool operator==(const FirstFailure&) const = default;
};

// What an attempt began with, where a role's template names no image: its later pods have the same,
// since programs of different builds do not work together.
struct AttemptImages {
  std::string runtime;  // head and CPU workers
  std::string trainer;
  bool operator==(const AttemptImages&) const = default;
};

// What the operator goes on from after a restart (operator/plan/cost.h): exact, and of bounded size
// however many pods there were. Amounts are micro-dollars per hour times seconds: 3.6e9 of them are
// a dollar. Times and seconds are whole.
struct CostLedger {
  // Of the role's pods that are no longer there.
  int64_t gone_pods = 0;
  int64_t gone_priceless = 0;
  int64_t gone_seconds = 0;
  int64_t gone_amount = 0;
  int64_t gone_on_demand = 0;
  // Of those that were there at cost.asOf.
  int64_t pods = 0;    // bound to a node or not
  int64_t newest = 0;  // of them, those of cost.incarnation
  int64_t billed = 0;  // of them, those that were bound
  int64_t priceless = 0;
  int64_t seconds = 0;
  int64_t amount = 0;
  int64_t on_demand = 0;
  int64_t open = 0;     // with a price, and not ended
  int64_t rate = 0;     // micro-dollars per hour of all that are open
  int64_t dearest = 0;  // micro-dollars per hour: the highest price that a pod of the role ever had
  // Pods made not later than `since_incarnation` bill from then: what they cost before is in
  // `gone_amount`.
  std::optional<base::WallTime> since;
  int64_t since_incarnation = 0;
  int64_t trained = 0;  // amount while the training ran
  int64_t over = 0;     // that was told and is more than the sums: an end was seen late
  int64_t uncertain_seconds = 0;
  int64_t uncertain = 0;  // amount
  bool operator==(const CostLedger&) const = default;
};

struct RoleCost {
  std::string name;
  int64_t pods = 0;  // that have been bound to a node, over all attempts
  double pod_hours = 0;
  double dollars = 0;
  std::optional<double> on_demand_dollars;  // where it differs
  std::optional<double> waiting_dollars;    // GPU workers
  std::optional<int64_t> priceless_pods;    // of `pods`; none: all have a price
  CostLedger ledger;
  bool operator==(const RoleCost&) const = default;
};

// What the job has cost. Dollars are rounded to millionths.
struct JobCost {
  double dollars = 0;
  std::optional<double> on_demand_dollars;  // where it differs
  std::optional<double> waiting_dollars;    // of `dollars`, while ranks waited for data
  std::optional<double> per_million_samples;
  double uncertain_dollars = 0;  // `dollars` may be off by so much
  int64_t uncertain_seconds = 0;
  std::optional<int64_t> priceless_pods;  // that are in none of the sums
  base::WallTime as_of;
  int64_t incarnation = 0;  // the largest of a pod that the sums know
  std::vector<RoleCost> roles;
  bool operator==(const JobCost&) const = default;
};

// What a rule has found in the job, and what to change: the head's words.
struct JobFinding {
  std::string rule;               // "InputBound", one of a row of finding_rules.h
  std::string message;            // a sentence with figures
  std::string remedy;             // what to change, as an instruction
  std::string field;              // of the manifest; empty: none
  std::string member;             // "cpu-0"; empty: the job
  std::optional<double> seconds;  // of training that it has cost so far; none: not known
  std::optional<double> dollars;  // likewise
  base::WallTime since;           // when it was first found; 1970: not known
  bool active = false;            // it still held when the head last spoke
  bool operator==(const JobFinding&) const = default;
};
inline constexpr int kMostFindings = 5;  // in a status; causes first
// Of which there is an event, each once: a job has only so many, and its end is to be among them.
inline constexpr int kMostToldFindings = 10;

struct JobStatus {
  int64_t observed_generation = 0;  // 0: the operator has not seen the job yet
  std::vector<Condition> conditions;
  std::optional<base::WallTime> start_time;
  std::optional<base::WallTime> completion_time;
  int32_t attempt = 0;  // 0: no pods yet
  int32_t restarts = 0;
  // Of `restarts`, those of the attempt's scripts while its pods stayed; none: there were none.
  std::optional<int32_t> script_restarts;
  std::string spec_hash;                // of what the attempt is made from (spec_hash.h)
  std::optional<AttemptImages> images;  // none: an operator that kept none began the attempt
  std::vector<std::string> uncounted;
  std::string head_address;
  std::string history;     // what a head leaves to the next one; opaque
  std::string registered;  // "2/3"
  std::vector<RoleCounts> role_statuses;
  std::optional<JobProgress> progress;
  std::optional<JobResult> result;
  std::optional<JobCost> cost;  // none: nothing of the job has a price
  std::optional<FirstFailure> first_failure;
  std::vector<JobFinding> findings;        // at most kMostFindings
  std::vector<std::string> findings_told;  // for the operator: "InputBound", "SlowWorker/cpu-0"
  bool operator==(const JobStatus&) const = default;

  const Condition* Find(ConditionType type) const;  // null when absent
  bool Is(ConditionType type) const;                // present and True
  bool finished() const { return Is(ConditionType::kSucceeded) || Is(ConditionType::kFailed); }
};

// "Running"; and back, empty for an unknown word.
std::string_view NameOf(ConditionType type);
std::string_view NameOf(ConditionStatus status);
std::optional<ConditionType> ConditionTypeOf(std::string_view name);

// As it is under `status` of the object: times in RFC 3339 with whole seconds, absent fields,
// empty texts and lists and numbers that are not finite left out. Texts and lists that are longer
// than the schema allows are cut.
std::string StatusToJson(const JobStatus& status);
// Reads what StatusToJson writes. Unknown fields and conditions are skipped (a newer operator wrote
// them); kInvalidArgument names the field whose type is wrong. Empty text or "null" is an empty
// status.
absl::StatusOr<JobStatus> StatusFromJson(std::string_view json);

// The last words of a head or of rank 0, as their pod's termination message: one line of JSON, at
// most 3 KiB,
// {"state": "Succeeded" or "Failed", "message": "...", "result": {...as in status...},
// "failure": {...as firstFailure...}}. It keeps the verdict
// when nobody listened at the end.
struct Verdict {
  bool succeeded = false;
  std::string message;  // the summary, or what went wrong
  JobResult result;
  FirstFailure failure;  // pod and message of the member that failed first, when the head knows it
  bool operator==(const Verdict&) const = default;
};
std::string VerdictToJson(const Verdict& verdict);
// Empty for text that is not a verdict (a crash's log tail, for example).
std::optional<Verdict> VerdictFromJson(std::string_view text);

// "2026-01-01T00:00:00Z"; kInvalidArgument for other forms. Fractions and offsets are read, never
// written.
std::string FormatTime(base::WallTime time);
absl::StatusOr<base::WallTime> ParseTime(std::string_view text);

}  // namespace hetero::api
