#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/insight/figures.h"
#include "runtime/insight/rules/judges.h"
#include "runtime/insight/rules/statistics.h"
#include "runtime/insight/rules/wording.h"

namespace hetero::insight {
namespace {

using Series = std::vector<std::pair<double, double>>;  // time, value

double Span(const Series& series) { return series.back().first - series.front().first; }

Series RssOf(const MemberEvidence& member) {
  Series series;
  for (const Moment& moment : member.moments) {
    if (moment.rss_bytes > 0) {
      series.emplace_back(moment.at_seconds, static_cast<double>(moment.rss_bytes));
    }
  }
  return series;
}

// SteadyGrowth() compares parts whose middles lie five sixths of the series apart.
double GrowthPerSecond(const Series& series) {
  const double growth = SteadyGrowth(series);
  return growth > 0 && Span(series) > 0 ? growth / (Span(series) * 5 / 6) : 0;
}

// As Kubernetes writes a quantity: "16Gi".
std::string Gibibytes(double bytes) { return absl::StrCat(std::ceil(bytes / 0x1p30), "Gi"); }

}  // namespace

Findings JudgeHostMemoryGrowth(const Reading& reading, const Limits& limits) {
  const MemberEvidence* worst = nullptr;
  double left = 0, per_second = 0;  // of the worst: seconds until its limit
  for (const MemberEvidence& member : reading.members()) {
    const auto limit = static_cast<double>(member.memory_limit_bytes);
    const Series rss = RssOf(member);
    const double rate = GrowthPerSecond(rss);
    if (limit <= 0 || rate <= 0) continue;
    if (100 * SteadyGrowth(rss) < limits("growthPercent") * limit) continue;
    const double until = std::max(0.0, limit - rss.back().second) / rate;
    if (until > limits("minutesLeft") * kSecondsPerMinute) continue;
    if (worst != nullptr && until >= left) continue;
    worst = &member;
    left = until;
    per_second = rate;
  }
  if (worst == nullptr) return {};
  const std::string field = RoleField(worst->role, "template");
  const auto limit = static_cast<double>(worst->memory_limit_bytes);
  return {{.message =
               absl::StrCat(MemberText(worst->name, worst->node), " grows by ",
                            BytesText(per_second * kSecondsPerMinute), " a minute and reaches its ",
                            BytesText(limit), " of memory in ", DurationText(left)),
           .remedy = absl::StrCat("look for what ",
                                  reading.job().script && worst->kind == MemberKind::kTrainer
                                      ? "the script"
                                      : "Python operators and plugins",
                                  " keep, and until it is found set resources.limits.memory in ",
                                  field, " to ", Gibibytes(2 * limit)),
           .field = field,
           .member = worst->name}};
}

Findings JudgeGpuMemoryIncrease(const Reading& reading, const Limits& limits) {
  for (const MemberEvidence& member : reading.members()) {
    for (const auto& [index, shares] : GpuMemoryShare(member)) {
      Series series;
      for (size_t i = 0; i < shares.size(); ++i) {
        series.emplace_back(static_cast<double>(i), shares[i]);
      }
      const double growth = SteadyGrowth(series);
      if (growth <= 0 || 100 * growth < limits("growthPercent")) continue;
      return {{.message = absl::StrCat("the used memory of GPU ", index, " of ",
                                       MemberText(member.name, member.node), " has grown from ",
                                       ShareText(shares.front()), " to ", ShareText(shares.back()),
                                       " in ", DurationText(reading.window_seconds())),
               .remedy = reading.job().script
                             ? "let the script keep no tensors of earlier steps (loss.item(), "
                               "no lists of outputs), or take a smaller "
                               "training.batchSizePerWorker until it is found"
                             : absl::StrCat("set training.batchSizePerWorker to ",
                                            std::max(1, reading.job().batch_size / 2),
                                            " until what grows is found"),
               .field = "training.batchSizePerWorker",
               .member = member.name}};
    }
  }
  return {};
}

}  // namespace hetero::insight
