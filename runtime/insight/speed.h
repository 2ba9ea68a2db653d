#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/insight/report.h"

// What limits a job's speed and what would change it, from the counters of its members. Pure.
namespace hetero::insight {

struct RankTime {
  double data_wait_percent = 0;
  PhaseSeconds phases;
  WaitSeconds waits;
};

// The replicas of one CPU role that served.
struct RoleSupply {
  std::string role;
  int32_t replicas = 0;
  // What one replica can do, measured while it had work; 0: not measured.
  double samples_per_second = 0;
  std::optional<double> price_per_hour;  // of one replica
};

struct SpeedEvidence {
  std::vector<RankTime> ranks;
  int64_t steps = 0;
  int64_t samples = 0;                   // consumed by all ranks
  std::optional<double> probed_ceiling;  // samples per second of all ranks without input
  std::vector<RoleSupply> supplies;
  std::optional<double> price_per_hour;  // of the whole job
};

struct SpeedVerdict {
  std::string sentence;           // empty before the first step
  double samples_per_second = 0;  // in training: without evaluations and checkpoints
  std::optional<double> ceiling;  // probed, else from the time of steps that is not waiting
  std::vector<ReportPrediction> predictions;
};

// A job is input-bound when its worst rank waits for data 10 % of its time or more.
//
// The prediction: a job that waits consumes what its workers produce, so n more replicas add n
// times what one can do, up to the ceiling. One that does not wait gains nothing from more; fewer
// are enough as long as their sum stays above what it consumes.
SpeedVerdict JudgeSpeed(const SpeedEvidence& evidence);

}  // namespace hetero::insight
