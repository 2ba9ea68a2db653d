#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/compare/comparison.h"

namespace hetero::commands {

// What `hetero-runtime compare --baseline-without-cpu-workers` is told.
struct BaselineArguments {
  std::string manifest;
  std::vector<std::string> overrides;
  int64_t steps = 100;
  int pairs = 1;
  std::string output;   // empty: hetero-output/<job name>-baseline
  std::string trainer;  // empty: the one beside this program
};

inline constexpr int kMostPairs = compare::kMostRuns / 2;

// Runs the job without and with its CPU workers on this machine, in turn, and compares the runs,
// which stay in the folder. What the jobs print goes to standard error. Returns kExitSucceeded when
// `*comparison` is there; has printed why it is not. Takes SIGINT and SIGTERM: construct nothing
// that has threads before.
int RunBaseline(const BaselineArguments& arguments, compare::Comparison* comparison);

}  // namespace hetero::commands
