#pragma once

namespace hetero::bench {

// One job of many pods under the chart's defaults, with its head's status stream live: how long it
// takes to start, what its status weighs, how soon 1 and 100 lost members are back, what an
// operator that starts anew meets, how long the end takes, and the operator's memory all along,
// while small jobs are applied beside it.
struct BigJobOptions {
  int gpu = 512;
  int cpu = 1024;
  double limit_mib = 256;      // the chart's
  double others_seconds = 10;  // by which a small job has its pods
};
// Exit code: 1 when the memory's limit or the small jobs' is missed, or a step does not come.
int RunBigJob(const BigJobOptions& options);

}  // namespace hetero::bench
