#include "tests/unit/runtime/insight/rules/played_counters.h"

#include <algorithm>

namespace hetero::insight {

void PlayedProcess::Compute(PlayedGroup group, double begin, double end, double cpu,
                            int32_t threads, double slowdown) {
  Add(begin, end, cpu, [&](PlayedTick& tick) -> double& { return tick.cpu[group]; });
  Add(begin, end, cpu / threads, [&](PlayedTick& tick) -> double& { return tick.busiest[group]; });
  Add(begin, end, cpu * (slowdown - 1), [](PlayedTick& tick) -> double& { return tick.run_queue; });
}

const PlayedTotals& ToldBy(const std::vector<PlayedTotals>& history, double at) {
  auto after = std::upper_bound(
      history.begin(), history.end(), at,
      [](double moment, const PlayedTotals& totals) { return moment < totals.at; });
  return after == history.begin() ? history.front() : *(after - 1);
}

PhaseSeconds Minus(const PhaseSeconds& a, const PhaseSeconds& b) {
  return {.wait = a.wait - b.wait,
          .host_to_device = a.host_to_device - b.host_to_device,
          .forward = a.forward - b.forward,
          .backward = a.backward - b.backward,
          .all_reduce = a.all_reduce - b.all_reduce,
          .optimizer = a.optimizer - b.optimizer,
          .checkpoint = a.checkpoint - b.checkpoint,
          .evaluation = a.evaluation - b.evaluation,
          .other = a.other - b.other};
}

WaitSeconds Minus(const WaitSeconds& a, const WaitSeconds& b) {
  return {.no_worker = a.no_worker - b.no_worker,
          .workers = a.workers - b.workers,
          .transfer = a.transfer - b.transfer,
          .handover = a.handover - b.handover};
}

}  // namespace hetero::insight
