#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "runtime/insight/figures.h"
#include "runtime/insight/html_sections.h"
#include "runtime/insight/html_text.h"
#include "runtime/insight/python_cost.h"

// The parts about what limits the speed: causes of waiting, predictions, placement, time lines.
namespace hetero::insight {
namespace {

std::vector<std::pair<absl::string_view, double>> Shares(const PhaseSeconds& p) {
  return {{"wait", p.wait},
          {"hostToDevice", p.host_to_device},
          {"forward", p.forward},
          {"backward", p.backward},
          {"allReduce", p.all_reduce},
          {"optimizer", p.optimizer},
          {"checkpoint", p.checkpoint},
          {"evaluation", p.evaluation},
          {"other", p.other}};
}

// One column: what happened between two points.
std::string StackedColumn(const TimePoint& from, const TimePoint& to) {
  const auto before = Shares(from.phases);
  const auto after = Shares(to.phases);
  std::string parts;
  for (size_t i = 0; i < after.size(); ++i) {
    const double seconds = after[i].second - before[i].second;
    if (!(seconds > 0)) continue;
    // Shares that sum to less than one would not fill the column.
    absl::StrAppendFormat(&parts, "<i style=\"flex:%.4f 0 0;background:var(--p-%s)\"></i>",
                          1000 * seconds, after[i].first);
  }
  return absl::StrCat("<b title=\"steps ", from.step + 1, " to ", to.step, ", ",
                      DurationText(from.seconds), " to ", DurationText(to.seconds), "\">", parts,
                      "</b>");
}

std::string Cell(absl::string_view text, bool number = false) {
  return absl::StrCat(number ? "<td class=\"num\">" : "<td>", EscapeHtml(text), "</td>");
}

std::string Optional(const std::optional<double>& seconds) {
  return seconds ? DurationText(*seconds) : "";
}

std::string Bytes(const std::optional<int64_t>& bytes) {
  return bytes ? BytesText(static_cast<double>(*bytes)) : "varies";
}

}  // namespace

std::string TimeLinesHtml(const Report& report) {
  std::string body;
  for (const ReportTimeLine& line : report.time_lines) {
    if (line.points.empty()) continue;
    std::string columns;
    TimePoint from;
    for (const TimePoint& to : line.points) {
      columns += StackedColumn(from, to);
      from = to;
    }
    absl::StrAppend(&body, "<p class=\"sub\">rank ", line.rank, "</p>\n<div class=\"strip\">",
                    columns, "</div>\n");
  }
  if (body.empty()) return "";
  return Section("", "The time of every rank, along the training",
                 absl::StrCat("<p class=\"sub\">each column is a stretch of the training, in the "
                              "colours of the split above</p>\n",
                              body));
}

std::string PredictionsHtml(const Report& report) {
  constexpr absl::string_view kTitle = "What other numbers of CPU workers would do";
  if (report.predictions.empty()) {
    return Section("half", kTitle, Sentence("Nothing that the measurements would speak for."));
  }
  std::string rows;
  for (const ReportPrediction& p : report.predictions) {
    absl::StrAppend(
        &rows, "<tr>", Cell(absl::StrCat(p.replicas, " x ", p.role)),
        Cell(NumberText(p.samples_per_second), true),
        Cell(p.dollars_per_1000_steps ? absl::StrCat("$", NumberText(*p.dollars_per_1000_steps))
                                      : "-",
             true),
        "</tr>\n");
  }
  return Section(
      "half", kTitle,
      absl::StrCat("<div class=\"scroll\"><table>\n<thead><tr><th>workers</th><th "
                   "class=\"num\">samples/s</th><th class=\"num\">per 1,000 steps</th></tr></thead>"
                   "\n<tbody>\n",
                   rows, "</tbody>\n</table></div>\n",
                   Sentence("From what one worker did while it had work, up to the rate that "
                            "training has without input.")));
}

std::string PlacementHtml(const Report& report) {
  constexpr absl::string_view kTitle = "Where each operator ran";
  if (report.placement.empty()) return Section("half", kTitle, Sentence("It was not decided."));
  std::string rows;
  for (const ReportPlacement& p : report.placement) {
    absl::StrAppend(&rows, "<tr title=\"", EscapeHtml(p.reason), "\">",
                    Cell(p.function.empty() ? p.op : p.function),
                    Cell(p.where == "Trainer" ? "trainer" : "CPU workers"),
                    Cell(Optional(p.worker_seconds), true), Cell(Optional(p.trainer_seconds), true),
                    Cell(Bytes(p.bytes_out), true), "</tr>\n");
  }
  std::string reasons;
  std::string last;
  for (const std::string& cost : PythonCosts(report)) {
    absl::StrAppend(&reasons, "<p class=\"sub\">", EscapeHtml(cost), "</p>\n");
  }
  for (const ReportPlacement& p : report.placement) {
    if (p.reason == last) continue;
    absl::StrAppend(&reasons, "<p class=\"sub\">", EscapeHtml(p.op), ": ", EscapeHtml(p.reason),
                    "</p>\n");
    last = p.reason;
  }
  return Section("half", kTitle,
                 absl::StrCat("<div class=\"scroll\"><table>\n<thead><tr><th>operator</th><th>on"
                              "</th><th class=\"num\">per sample there</th><th "
                              "class=\"num\">on the trainer</th><th class=\"num\">bytes "
                              "out</th></tr></thead>\n<tbody>\n",
                              rows, "</tbody>\n</table></div>\n", reasons));
}

std::string WaitCausesHtml(const Report& report) {
  if (!report.wait_seconds) return "";
  const WaitSeconds& w = *report.wait_seconds;
  const double all = w.no_worker + w.workers + w.transfer + w.handover;
  if (!(all > 0)) return "";
  std::string causes;
  const auto add = [&](absl::string_view name, double seconds) {
    if (seconds < 0.005 * all) return;
    absl::StrAppend(&causes, causes.empty() ? "" : ", ", name, " ", DurationText(seconds));
  };
  add("still in work at the CPU workers", w.workers);
  add("without a connected CPU worker", w.no_worker);
  add("on its way", w.transfer);
  add("until the trainer took it over", w.handover);
  return absl::StrCat("<p class=\"note\">data wait: ", causes, "</p>\n");
}

}  // namespace hetero::insight
