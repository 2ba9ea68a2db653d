#include "runtime/head/report_use.h"

#include <algorithm>
#include <tuple>

namespace hetero::head {
namespace {

constexpr char kWholeStep[] = "wholeStep";

insight::ReportResources MakeResources(const MemberRecord& member, const MemberKey& key) {
  const MemberUse& use = member.use;
  const UseTotals& totals = use.totals();
  insight::ReportResources resources{.member = member.name,
                                     .role = key.role,
                                     .index = key.index,
                                     .seconds = totals.seconds,
                                     .cores = totals.cores,
                                     .cpu_seconds = totals.cpu_seconds,
                                     .busy_cores_median = use.busy_cores().Quantile(0.5),
                                     .busy_cores_p95 = use.busy_cores().Quantile(0.95),
                                     .run_queue_seconds = totals.run_queue_seconds,
                                     .throttled_seconds = totals.throttled_seconds,
                                     .peak_rss_bytes = totals.peak_rss_bytes,
                                     .major_faults = totals.major_faults,
                                     .disk_read_bytes = totals.disk_read_bytes,
                                     .disk_written_bytes = totals.disk_written_bytes,
                                     .received_bytes = totals.received_bytes,
                                     .sent_bytes = totals.sent_bytes};
  if (totals.gpu_seconds > 0) {
    resources.gpu_utilization = totals.gpu_busy_seconds / totals.gpu_seconds;
  }
  insight::UseSeries line(insight::ReportResources::kMostPoints + 1);
  for (const insight::UsePoint& point : use.whole().points()) line.Add(point);
  resources.time_line = line.points();
  return resources;
}

void AddSpan(const std::string& name, const insight::Histogram& seconds, insight::Report& report) {
  if (seconds.count() == 0) return;
  report.batch_lives.push_back({.span = name,
                                .count = seconds.count(),
                                .p50 = seconds.Quantile(0.5),
                                .p90 = seconds.Quantile(0.9),
                                .p95 = seconds.Quantile(0.95),
                                .p99 = seconds.Quantile(0.99)});
}

}  // namespace

void AddUse(const JobRecord& record, insight::Report& report) {
  insight::Histogram steps;
  std::array<insight::Histogram, kLifeSpans> spans;
  for (const auto& [key, member] : record.members) {
    if (member.use.totals().seconds > 0) {
      report.resources.push_back(MakeResources(member, key));
    }
    steps.Add(member.use.StepSeconds());
    for (size_t i = 0; i < kLifeSpans; ++i) {
      spans[i].Add(member.use.LifeSeconds(static_cast<LifeSpan>(i)));
    }
  }
  std::stable_sort(report.resources.begin(), report.resources.end(),
                   [](const auto& a, const auto& b) {
                     return std::tie(a.role, a.index) < std::tie(b.role, b.index);
                   });
  for (size_t i = 0; i < kLifeSpans; ++i) {
    AddSpan(NameOf(static_cast<LifeSpan>(i)), spans[i], report);
  }
  AddSpan(kWholeStep, steps, report);
}

}  // namespace hetero::head
