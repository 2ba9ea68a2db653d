#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "runtime/insight/figures.h"
#include "runtime/insight/html_sections.h"
#include "runtime/insight/html_text.h"

// The parts about what processes used, and where batches spent their time.
namespace hetero::insight {
namespace {

constexpr size_t kMostStrips = 16;  // members; the table has all

struct LifePart {
  absl::string_view span;  // report.json's name
  absl::string_view text;
  absl::string_view colour;  // of the style sheet's phases
};
// In the order of a batch's life.
constexpr LifePart kLifeParts[] = {
    {"queued", "waits for its producer", "wait"},
    {"work", "is made", "forward"},
    {"transfer", "is on its way", "allReduce"},
    {"window", "waits in the trainer's window", "hostToDevice"},
    {"handover", "until its step begins", "checkpoint"},
    {"step", "is trained on", "backward"},
};

const ReportLifeSpan* FindSpan(const Report& report, absl::string_view name) {
  const auto found = std::find_if(report.batch_lives.begin(), report.batch_lives.end(),
                                  [&](const ReportLifeSpan& one) { return one.span == name; });
  return found == report.batch_lives.end() ? nullptr : &*found;
}

std::string LifeRow(absl::string_view colour, absl::string_view text, const ReportLifeSpan& span) {
  const std::string box =
      colour.empty() ? "" : absl::StrCat(" style=\"background:var(--p-", colour, ")\"");
  return absl::StrCat("<li><i", box, "></i><span>", EscapeHtml(text), "</span><span>",
                      DurationText(span.p50), "</span><span title=\"p95\">", DurationText(span.p95),
                      "</span></li>\n");
}

// How much of the cores one stretch of time kept busy, and for what.
std::string BusyColumn(const UsePoint& point) {
  const double most = std::max(point.cores * point.span, Sum(point.cpu_seconds));
  const double training = point.cpu_seconds[static_cast<size_t>(ThreadGroup::kTrain)];
  const double making = point.cpu_seconds[static_cast<size_t>(ThreadGroup::kPipeline)] +
                        point.cpu_seconds[static_cast<size_t>(ThreadGroup::kPython)];
  const double rest = std::max(Sum(point.cpu_seconds) - training - making, 0.0);
  std::string parts;
  const auto add = [&](double seconds, absl::string_view colour) {
    if (!(seconds > 0) || !(most > 0)) return;
    absl::StrAppendFormat(&parts, "<i style=\"flex:%.4f 0 0%s%s\"></i>", 1000 * seconds / most,
                          colour.empty() ? "" : ";background:var(--p-",
                          colour.empty() ? "" : absl::StrCat(colour, ")"));
  };
  add(making, "forward");
  add(training, "backward");
  add(rest, "other");
  add(most - Sum(point.cpu_seconds), "");
  return absl::StrCat("<b title=\"at ", DurationText(point.seconds), ": ",
                      NumberText(point.busy_cores()), " of ", NumberText(point.cores), " cores\">",
                      parts, "</b>");
}

std::string NumberCell(absl::string_view text) {
  return absl::StrCat("<td class=\"num\">", EscapeHtml(text), "</td>");
}

std::string ResourceRow(const ReportResources& r) {
  return absl::StrCat(
      "<tr><td>", EscapeHtml(r.member), "</td>", NumberCell(NumberText(r.cores)),
      NumberCell(NumberText(r.busy_cores_median)), NumberCell(NumberText(r.busy_cores_p95)),
      NumberCell(DurationText(Sum(r.cpu_seconds))), NumberCell(DurationText(r.run_queue_seconds)),
      NumberCell(r.throttled_seconds ? DurationText(*r.throttled_seconds) : "-"),
      NumberCell(BytesText(static_cast<double>(r.peak_rss_bytes))),
      NumberCell(r.gpu_utilization ? PercentText(100 * *r.gpu_utilization) : "-"), "</tr>\n");
}

}  // namespace

std::string BatchLivesHtml(const Report& report) {
  std::string bar, list;
  int64_t count = 0;
  for (const LifePart& part : kLifeParts) {
    const ReportLifeSpan* span = FindSpan(report, part.span);
    if (span == nullptr) continue;
    count = std::max(count, span->count);
    list += LifeRow(part.colour, part.text, *span);
    if (!(span->p50 > 0)) continue;
    absl::StrAppendFormat(
        &bar, "<i style=\"flex:%.4f 0 0;background:var(--p-%s)\" title=\"%s %s\"></i>",
        1e6 * span->p50, part.colour, EscapeHtml(part.text), DurationText(span->p50));
  }
  if (bar.empty()) return "";
  if (const ReportLifeSpan* read = FindSpan(report, "read")) {
    list += LifeRow("", "of being made: waits for storage", *read);
  }
  return Section(
      "", "The life of a batch",
      absl::StrCat("<p class=\"sub\">medians of ", CountText(count),
                   " batches, and what one of twenty exceeds</p>\n", "<div class=\"split\">\n", bar,
                   "</div>\n<ul class=\"phases wide\">\n", list, "</ul>\n"));
}

std::string ResourcesHtml(const Report& report) {
  if (report.resources.empty()) return "";
  std::string strips, rows;
  size_t shown = 0;
  for (const ReportResources& resources : report.resources) {
    rows += ResourceRow(resources);
    if (resources.time_line.empty() || ++shown > kMostStrips) continue;
    absl::StrAppend(&strips, "<p class=\"sub\">", EscapeHtml(resources.member),
                    "</p>\n<div class=\"strip\">");
    for (const UsePoint& point : resources.time_line) strips += BusyColumn(point);
    strips += "</div>\n";
  }
  return Section(
      "", "What the processes used",
      absl::StrCat(
          "<p class=\"sub\">each column is a stretch of the job, as high as its cores: making "
          "batches, training, the rest; empty is idle</p>\n",
          strips, shown > kMostStrips ? Sentence("The table has the others too.") : "",
          "<div class=\"scroll\"><table>\n<thead><tr><th>process</th><th class=\"num\">cores</th>"
          "<th class=\"num\">busy, median</th><th class=\"num\">p95</th><th class=\"num\">CPU "
          "time</th><th class=\"num\">ready, not running</th><th class=\"num\">throttled</th>"
          "<th class=\"num\">peak memory</th><th class=\"num\">GPU</th></tr></thead>\n<tbody>\n",
          rows, "</tbody>\n</table></div>\n"));
}

}  // namespace hetero::insight
