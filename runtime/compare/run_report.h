#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// A run as its report.json tells of it (docs/report.md), read leniently: a field that is absent, or
// of another shape than the document says, is not known; fields that are not known are passed over.
// Values; a report may be of another version, or anybody's.
namespace hetero::compare {

struct CurvePoint {
  double step = 0;
  double value = 0;
};

// Where the time of rank 0 had gone when it had completed `step` steps.
struct RatePoint {
  double step = 0;
  double seconds = 0;  // of training, without evaluations and checkpoints
};

struct RunReport {
  std::string place;  // as it was named: a folder, a file, a URI
  std::string job;
  std::string state;    // "Succeeded", "Failed", "Stopped"
  std::string message;  // why it failed or was stopped
  std::optional<double> steps, samples, samples_per_second, wait_percent, startup_seconds,
      train_seconds, wall_seconds, step_seconds, loss, accuracy, dollars, dollars_per_million;
  std::map<std::string, double> phase_seconds;  // by docs/report.md's name
  std::map<std::string, double> cpu_seconds;    // per sample, by role
  std::map<std::string, double> reported;       // by a script
  std::map<std::string, std::string> versions;  // by program
  std::vector<RatePoint> time_line;             // of the first rank that has one
  std::vector<CurvePoint> losses;               // of training
  std::vector<CurvePoint> accuracies;
  size_t faults = 0;
  std::string digest;          // empty: not known
  std::string digest_problem;  // why it is not known, where somebody said so
  nlohmann::json config;       // the manifest as run; null: not told

  // Of all replicas of all roles that have a price; absent: none has.
  std::optional<double> dollars_per_hour;
  std::vector<std::string> unpriced_roles;  // beside priced ones, without the head
  int64_t cpu_workers = 0;                  // replicas, by the manifest

  // What training costs at its rate, starting left out. Absent without a price or a rate.
  std::optional<double> TrainingDollarsPerMillion() const;
  bool failed() const { return state == "Failed"; }
};

// What to do about a place that has no report.
inline constexpr char kWhatToGive[] = "; give a run's output folder, or the report.json in it";

// Reads what stood at `place`. kInvalidArgument: it is no report of a job, or was cut off; the
// message names `place`, says what is wrong and what to do.
absl::StatusOr<RunReport> ParseReport(std::string_view text, const std::string& place);

}  // namespace hetero::compare
