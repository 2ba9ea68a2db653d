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
  std::optional<FirstFailure> first_failure;
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
