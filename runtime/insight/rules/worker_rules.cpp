#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/insight/figures.h"
#include "runtime/insight/rules/judges.h"
#include "runtime/insight/rules/statistics.h"
#include "runtime/insight/rules/wording.h"

namespace hetero::insight {
namespace {

// Samples per second while it had work; 0: not measured.
double RateAtWork(const MemberEvidence& worker) {
  return worker.busy_seconds > 0 ? static_cast<double>(worker.samples) / worker.busy_seconds : 0;
}

double MedianOfOthers(const std::vector<const MemberEvidence*>& workers,
                      const MemberEvidence& worker) {
  std::vector<double> rates;
  for (const MemberEvidence* other : workers) {
    if (other == &worker || other->role != worker.role) continue;
    if (RateAtWork(*other) > 0) rates.push_back(RateAtWork(*other));
  }
  return Median(std::move(rates));
}

struct Slow {
  const MemberEvidence* worker = nullptr;
  double times = 0, rate = 0, others = 0;
};

// Of the seconds that trainers wait, as much as the supply that is missing with this worker.
double LostTo(const Reading& reading, const Slow& slow) {
  const double deficit = reading.demand_rate() - reading.consumed_rate();
  const double share = deficit > 0 ? std::min(1.0, (slow.others - slow.rate) / deficit) : 1;
  return reading.wait_seconds() * share;
}

}  // namespace

Findings JudgeSlowWorker(const Reading& reading, const Limits& limits) {
  if (!reading.WaitsForWork(limits("waitPercent"))) return {};
  const std::vector<const MemberEvidence*> workers = reading.CpuWorkers();
  Slow slowest;
  int64_t slow_ones = 0;
  for (const MemberEvidence* worker : workers) {
    const double rate = RateAtWork(*worker);
    const double others = MedianOfOthers(workers, *worker);
    if (rate <= 0 || others < limits("slowerThan") * rate) continue;
    ++slow_ones;
    if (others / rate > slowest.times) slowest = {worker, others / rate, rate, others};
  }
  if (slowest.worker == nullptr) return {};
  const MemberEvidence& worker = *slowest.worker;
  const std::string field = RoleField(worker.role, "template");
  return {{.message = absl::StrCat(
               MemberText(worker.name, worker.node), " makes ", RateText(slowest.rate),
               " while it has work, its neighbours ", RateText(slowest.others),
               slow_ones > 1 ? absl::StrCat(" (", slow_ones - 1, " more are slow)") : "",
               ", and trainers wait for data"),
           .remedy = absl::StrCat("replace it (delete its pod); if ",
                                  worker.node.empty() ? "its node" : "node " + worker.node,
                                  " stays slow, exclude it by nodeAffinity in ", field),
           .field = field,
           .member = worker.name,
           .seconds = LostTo(reading, slowest)}};
}

Findings JudgeIdleWorkers(const Reading& reading, const Limits& limits) {
  const RoleEvidence* role = reading.CpuRole();
  if (reading.waiting_rank() == nullptr || role == nullptr || role->scaled_by_job) return {};
  if (reading.wait_percent() > limits("waitPercent")) return {};
  double busy = 0;
  int32_t workers = 0;
  for (const MemberEvidence* worker : reading.CpuWorkers()) {
    if (worker->role != role->name || worker->seconds <= 0) continue;
    busy += std::min(1.0, worker->busy_seconds / worker->seconds);
    ++workers;
  }
  if (workers < 2 || busy <= 0 || 100 * busy >= limits("busyPercent") * workers) return {};
  // So many that those which stay have some time to spare.
  constexpr double kMostBusy = 0.8;
  const auto enough = std::max({static_cast<int32_t>(std::ceil(busy / kMostBusy)), 1});
  const int32_t spare = workers - enough;
  if (spare < 1) return {};
  const std::string field = RoleField(role->name, "replicas");
  Finding finding = {
      .message = absl::StrCat(Count(workers, "replica"), " of ", role->name, " have work ",
                              ShareText(busy / workers), " of their time and trainers wait ",
                              PercentText(reading.wait_percent()), " of theirs"),
      .remedy = absl::StrCat("set ", field, " to ", enough),
      .field = field};
  if (role->price_per_hour) {
    finding.dollars = *role->price_per_hour * spare * reading.window_seconds() / kSecondsPerHour;
  }
  return {finding};
}

}  // namespace hetero::insight
