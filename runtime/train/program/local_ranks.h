#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"

namespace hetero::train {

// One process per GPU of this pod. Rank i of the pod is the same program with the environment of
// this one and
//   HETERO_LOCAL_RANK=i      its place among the pod's ranks
//   HETERO_PARENT_PID=p      this process, with which it ends
//   CUDA_VISIBLE_DEVICES=g   the i-th of the GPUs that this process sees
struct LocalRankOptions {
  int count = 1;
  std::string program;  // path
  // Of rank i.
  std::vector<std::vector<std::string>> arguments;
};

// Runs the ranks to their end and returns the exit code to leave with: 0 when all ended with 0,
// else that of the first one that failed (128 + signal for a signal); the others are then asked to
// stop and killed after ten seconds. `stop` is passed on as SIGTERM.
int RunLocalRanks(const LocalRankOptions& options, base::Clock& clock, std::stop_token stop);

// The `index`-th entry of `visible`, a value of CUDA_VISIBLE_DEVICES; `index` itself when empty.
std::string VisibleGpu(const std::string& visible, int index);

}  // namespace hetero::train
