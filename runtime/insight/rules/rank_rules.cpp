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

double OwnPerStep(const RankEvidence& rank) {
  return rank.steps > 0 ? OwnSeconds(rank.phases) / static_cast<double>(rank.steps) : 0;
}

// The share of the window that `seconds` are, in percent.
double LostPercent(const Reading& reading, double seconds) {
  return reading.window_seconds() > 0 ? 100 * seconds / reading.window_seconds() : 0;
}

// What each step costs whatever the size of its batch.
double Overhead(const RankEvidence& rank) {
  const PhaseSeconds& p = rank.phases;
  return p.host_to_device + p.all_reduce + p.optimizer + std::min(rank.waits.handover, p.wait);
}

// The one that waits least for the others: what it spends in reductions is the reductions'.
const RankEvidence* LastRank(const Reading& reading) {
  const RankEvidence* last = nullptr;
  for (const RankEvidence& rank : reading.ranks()) {
    if (rank.steps == 0) continue;
    if (last == nullptr || rank.phases.all_reduce < last->phases.all_reduce) last = &rank;
  }
  return last;
}

struct Outliers {
  double mean = 0, limit = 0;  // seconds
  int64_t count = 0;
  double lost_share = 0;  // of all steps' time, above what they would have taken
};

Outliers FindOutliers(const std::vector<double>& steps, double deviations) {
  Outliers outliers{.mean = Mean(steps)};
  double squares = 0, all = 0, above = 0;
  for (const double seconds : steps) {
    squares += (seconds - outliers.mean) * (seconds - outliers.mean);
    all += seconds;
  }
  outliers.limit =
      outliers.mean + deviations * std::sqrt(squares / static_cast<double>(steps.size()));
  const double usual = Median(steps);
  for (const double seconds : steps) {
    if (seconds <= outliers.limit) continue;
    ++outliers.count;
    above += seconds - usual;
  }
  outliers.lost_share = all > 0 ? above / all : 0;
  return outliers;
}

}  // namespace

Findings JudgeSlowRank(const Reading& reading, const Limits& limits) {
  if (reading.job().partitions > 1 || reading.job().script) return {};
  const RankEvidence* slowest = nullptr;
  for (const RankEvidence& rank : reading.ranks()) {
    if (slowest == nullptr || OwnPerStep(rank) > OwnPerStep(*slowest)) slowest = &rank;
  }
  std::vector<double> others;
  for (const RankEvidence& rank : reading.ranks()) {
    if (&rank != slowest && OwnPerStep(rank) > 0) others.push_back(OwnPerStep(rank));
  }
  if (others.empty()) return {};
  const double usual = Median(others);
  const double own = OwnPerStep(*slowest);
  const double lost = (own - usual) * static_cast<double>(slowest->steps);
  if (own < limits("slowerThan") * usual || lost <= 0 ||
      LostPercent(reading, lost) < limits("lostPercent")) {
    return {};
  }
  const MemberEvidence* member = reading.FindMember(slowest->member);
  const std::string role = member == nullptr ? "" : member->role;
  const std::string node = member == nullptr ? "" : member->node;
  const std::string field = role.empty() ? "roles" : RoleField(role, "template");
  return {
      {.message = absl::StrCat("rank ", slowest->rank, " (", MemberText(slowest->member, node),
                               ") needs ", DurationText(own), " for its own work of a step, ",
                               "the others ", DurationText(usual), " and then wait for it"),
       .remedy = absl::StrCat("look at the clock, temperature and other users of its device; if ",
                              node.empty() ? "its node" : "node " + node,
                              " stays slow, exclude it by nodeAffinity in ", field),
       .field = field,
       .member = slowest->member,
       .seconds = lost}};
}

Findings JudgeStepOutlier(const Reading& reading, const Limits& limits) {
  for (const RankEvidence& rank : reading.ranks()) {
    if (rank.step_seconds.empty()) continue;
    const Outliers outliers = FindOutliers(rank.step_seconds, limits("standardDeviations"));
    if (static_cast<double>(outliers.count) <= limits("outliers")) continue;
    if (100 * outliers.lost_share < limits("lostPercent")) continue;
    double seconds = 0;
    for (const double step : rank.step_seconds) seconds += step;
    return {{.message = absl::StrCat(Count(outliers.count, "step"), " of rank ", rank.rank, " of ",
                                     CountText(static_cast<int64_t>(rank.step_seconds.size())),
                                     " took more than ", DurationText(outliers.limit),
                                     ", the mean is ", DurationText(outliers.mean)),
             .remedy = "look in the time line at what runs beside these steps; what a script or "
                       "plugin does now and then belongs into a thread of its own or "
                       "training.checkpoint and training.evaluation",
             .field = "training",
             .member = rank.member,
             .seconds = seconds * outliers.lost_share}};
  }
  return {};
}

Findings JudgeSmallBatches(const Reading& reading, const Limits& limits) {
  const JobEvidence& job = reading.job();
  const RankEvidence* rank = LastRank(reading);
  if (rank == nullptr || job.script || job.batch_size <= 0) return {};
  if (job.batch_size > limits("mostSamples")) return {};
  const PhaseSeconds& p = rank->phases;
  const double overhead = Overhead(*rank);
  const double steps = OwnSeconds(p) + p.all_reduce + p.wait;
  if (overhead <= 0 || 100 * overhead < limits("overheadPercent") * steps) return {};
  constexpr int32_t kTimes = 4;
  const auto count = static_cast<double>(rank->steps);
  return {{.message = absl::StrCat("with ", Count(job.batch_size, "sample"), " a rank, ",
                                   ShareText(overhead / steps), " of each step of ",
                                   DurationText(steps / count),
                                   " is spent on what does not depend on the batch"),
           .remedy = absl::StrCat("set training.batchSizePerWorker to ", kTimes * job.batch_size,
                                  ", and training.optimizer.learningRate with it"),
           .field = "training.batchSizePerWorker",
           .seconds = overhead * (1 - 1.0 / kTimes)}};
}

}  // namespace hetero::insight
