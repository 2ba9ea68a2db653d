#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/runtime/insight/rules/played_counters.h"
#include "tests/unit/runtime/insight/rules/played_job.h"

// What there is of a played job while its time goes by, and afterwards.
namespace hetero::insight {

struct LiveWorker {
  const PlayedWorker* spec = nullptr;
  std::string name;
  size_t process = 0;
  double free_at = 0;
  std::vector<double> ends;  // of its tickets
  std::vector<PlayedTotals> history{PlayedTotals{}};
};

struct PlayedBatch {
  LiveWorker* worker = nullptr;
  double asked = 0, begun = 0, made = 0;
  double arrived = 0;  // 0: not yet sent
};

struct LiveRank {
  const PlayedRank* spec = nullptr;
  std::string name;
  size_t process = 0;
  double now = 0, wire_free_at = 0;
  std::vector<PlayedBatch> tickets;
  std::vector<std::pair<double, double>> step_seconds;  // when it ended, how long
  std::vector<PlayedTotals> history{PlayedTotals{}};
};

struct PlayedState {
  const PlayedJob& job;
  std::mt19937_64 random;
  std::vector<PlayedProcess> processes;  // ranks first
  std::vector<LiveRank> ranks;
  std::vector<LiveWorker> workers;
  std::vector<LossEvidence> losses;

  double Normal(double deviation) { return std::normal_distribution<double>(0, deviation)(random); }
};

// Threads that want to run on each core of a machine, at least 1: what everything takes longer.
double Crowding(const PlayedJob& job, const std::string& machine);

// What processes told between two moments (played_evidence.cpp).
Evidence Collect(PlayedState& state, double begin, double end);

}  // namespace hetero::insight
