#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/compare/comparison.h"
#include "runtime/compare/comparison_style.h"
#include "runtime/compare/shown_text.h"
#include "runtime/insight/figures.h"
#include "runtime/insight/html_text.h"
#include "runtime/insight/line_chart.h"
#include "runtime/insight/page_style.h"

namespace hetero::compare {
namespace {

using insight::EscapeHtml;
using insight::Section;
using insight::Sentence;

constexpr size_t kColours = 8;
constexpr size_t kMostListed = 500;    // differences
constexpr size_t kMostColumns = 2000;  // of a name or a value; the page breaks its lines
constexpr size_t kSmoothedFrom = 40;   // points, as in the report page
constexpr const char* kPhaseOrder[] = {"wait",       "hostToDevice", "forward",
                                       "backward",   "allReduce",    "optimizer",
                                       "checkpoint", "evaluation",   "other"};

std::string EscapedText(const std::string& text) {
  return EscapeHtml(ShownText(text, kMostColumns));
}

std::string Letter(size_t run) {
  return absl::StrCat("<b class=\"letter c", run % kColours, "\">", LetterOf(run), "</b>");
}

std::string HeaderCells(size_t runs) {
  std::string cells;
  for (size_t i = 0; i < runs; ++i)
    absl::StrAppend(&cells, "<th class=\"num\">", Letter(i), "</th>");
  return cells;
}

std::string TableOf(const std::string& head, const std::string& rows) {
  return absl::StrCat("<div class=\"scroll\"><table class=\"figures\">\n<thead><tr>", head,
                      "</tr></thead>\n<tbody>\n", rows, "</tbody>\n</table></div>\n");
}

std::string TitleHtml(const Comparison& comparison) {
  std::string text = absl::StrCat("<header>\n<div class=\"title\"><h1>Comparison of ",
                                  comparison.runs.size(), " runs</h1></div>\n<p class=\"verdict\">",
                                  EscapedText(comparison.ranking.sentence), "</p>\n<p>",
                                  EscapedText(comparison.input.sentence), "</p>\n");
  for (const std::string& note : comparison.notes) {
    absl::StrAppend(&text, "<p class=\"reason Stopped\">", EscapedText(note), "</p>\n");
  }
  return text + "</header>\n";
}

std::string RunsHtml(const Comparison& comparison) {
  std::string rows;
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    const RunReport& run = comparison.runs[i];
    absl::StrAppend(&rows, "<tr><td>", Letter(i), "</td><td class=\"wide mono\">",
                    EscapedText(run.place), "</td><td>", EscapeHtml(ShownText(run.job, 63)),
                    "</td><td>", EscapeHtml(ShownText(run.state, 20)), "</td></tr>\n");
  }
  return Section("", "Runs",
                 TableOf("<th>Run</th><th>Report</th><th>Job</th><th>State</th>", rows));
}

std::string DifferencesHtml(const Comparison& comparison) {
  constexpr absl::string_view kTitle = "What differs in the manifests";
  if (!comparison.manifests_known) {
    return Section("", kTitle, Sentence("Not every report has its manifest."));
  }
  if (comparison.differences.empty()) return Section("", kTitle, Sentence("Nothing."));
  std::string rows;
  const size_t listed = std::min(comparison.differences.size(), kMostListed);
  for (size_t i = 0; i < listed; ++i) {
    absl::StrAppend(&rows, "<tr><td class=\"mono\">", EscapedText(comparison.differences[i].path),
                    "</td>");
    for (const auto& value : comparison.differences[i].values) {
      absl::StrAppend(&rows, "<td class=\"num wide\">", EscapedText(ValueText(value)), "</td>");
    }
    rows += "</tr>\n";
  }
  std::string body = TableOf("<th>Field</th>" + HeaderCells(comparison.runs.size()), rows);
  if (listed < comparison.differences.size()) {
    absl::StrAppend(&body, "<p class=\"note\">The first ", listed, " of ",
                    comparison.differences.size(), ".</p>\n");
  }
  return Section("", kTitle, body);
}

std::string FiguresHtml(const Comparison& comparison) {
  std::string rows;
  for (const Row& row : comparison.rows) {
    absl::StrAppend(&rows, "<tr><td>", EscapeHtml(row.name), "</td>");
    for (const Cell& cell : row.cells) {
      absl::StrAppend(&rows, "<td class=\"num\">", EscapeHtml(cell.text));
      if (cell.ratio) {
        absl::StrAppend(&rows, " <span class=\"ratio\">", RatioText(cell), "</span>");
      }
      rows += "</td>";
    }
    rows += "</tr>\n";
  }
  return Section("", "Figures",
                 absl::StrCat(TableOf("<th></th>" + HeaderCells(comparison.runs.size()), rows),
                              "<p class=\"note\">Ratios are to run A; ~ is within the noise that "
                              "the runs themselves show.</p>\n"));
}

std::string SideRow(const std::string& name, const PriceSide& side, const PriceSide& first) {
  const auto cell = [](const std::optional<double>& value, const std::optional<double>& one,
                       std::string (*text)(double)) {
    std::string html = absl::StrCat("<td class=\"num\">", value ? text(*value) : "-");
    if (const std::optional<double> ratio = RatioOf(value, one)) {
      absl::StrAppend(&html, " <span class=\"ratio\">", insight::FixedText(*ratio, 2), "x</span>");
    }
    return html + "</td>";
  };
  return absl::StrCat(
      "<tr><td>", name, "</td>",
      cell(side.samples_per_second, first.samples_per_second, insight::NumberText),
      cell(side.dollars_per_hour, first.dollars_per_hour, DollarsText),
      cell(side.dollars_per_million, first.dollars_per_million, DollarsText),
      cell(side.samples_per_dollar(), first.samples_per_dollar(), insight::NumberText), "</tr>\n");
}

std::string PricesHtml(const Comparison& comparison) {
  if (!comparison.prices) return "";
  const PriceTable& table = *comparison.prices;
  std::string body = TableOf(
      "<th></th><th class=\"num\">Samples/s</th><th class=\"num\">$ per hour</th><th "
      "class=\"num\">$ per million samples</th><th class=\"num\">Samples per $</th>",
      SideRow("trainers alone", table.alone, {}) +
          SideRow("with CPU workers", table.together, table.alone));
  if (table.least_ratio) {
    absl::StrAppend(&body, "<p class=\"note\">Samples/s, pair by pair: ",
                    insight::FixedText(*table.least_ratio, 2), "x to ",
                    insight::FixedText(*table.greatest_ratio, 2), "x.</p>\n");
  }
  for (const std::string& note : table.notes) {
    absl::StrAppend(&body, "<p class=\"note\">", EscapedText(note), "</p>\n");
  }
  return Section("", "Price and performance, while training", body);
}

double PhaseSum(const RunReport& run) {
  double sum = 0;
  for (const char* phase : kPhaseOrder) {
    const auto found = run.phase_seconds.find(phase);
    if (found != run.phase_seconds.end() && found->second > 0) sum += found->second;
  }
  return run.samples && *run.samples >= 1 ? sum / *run.samples : 0;
}

std::string TimeBar(const RunReport& run, double longest) {
  std::string bar;
  const double sum = PhaseSum(run);
  for (const char* phase : kPhaseOrder) {
    const auto found = run.phase_seconds.find(phase);
    if (found == run.phase_seconds.end() || !(found->second > 0)) continue;
    const double seconds = found->second / *run.samples;
    absl::StrAppendFormat(
        &bar, "<i style=\"flex:%.4f 0 0;background:var(--p-%s)\" title=\"%s: %s\"></i>",
        100 * (seconds / sum), phase, PhaseName(phase), insight::DurationText(seconds));
  }
  return absl::StrFormat("<div class=\"split\" style=\"width:%.2f%%\">%s</div>",
                         100 * (sum / longest), bar);
}

std::string TimesHtml(const Comparison& comparison) {
  double longest = 0;
  for (const RunReport& run : comparison.runs) longest = std::max(longest, PhaseSum(run));
  if (!(longest > 0) || !insight::Known(longest)) return "";
  std::string bars;
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    const double sum = PhaseSum(comparison.runs[i]);
    absl::StrAppend(&bars, Letter(i),
                    sum > 0 ? TimeBar(comparison.runs[i], longest) : "<div class=\"split\"></div>",
                    "<span>", sum > 0 ? insight::DurationText(sum) : "-", "</span>\n");
  }
  std::string key;
  for (const char* phase : kPhaseOrder) {
    absl::StrAppend(&key, "<li><i style=\"background:var(--p-", phase, ")\"></i>", PhaseName(phase),
                    "</li>\n");
  }
  return Section("", "Where the time of a sample went",
                 absl::StrCat("<p class=\"sub\">rank 0's time by phase over all samples</p>\n",
                              "<div class=\"times\">\n", bars, "</div>\n<ul class=\"key\">\n", key,
                              "</ul>\n"));
}

std::vector<insight::ChartPoint> DrawnPoints(const std::vector<CurvePoint>& curve) {
  std::vector<insight::ChartPoint> points;
  for (const CurvePoint& point : curve) points.push_back({point.step, point.value});
  if (points.size() < kSmoothedFrom) return points;
  return insight::RunningMedian(points,
                                static_cast<int>(std::max<size_t>(9, points.size() / 25)) | 1);
}

std::string CurvesHtml(const Comparison& comparison, absl::string_view title,
                       std::vector<CurvePoint> RunReport::*curve, std::string (*text)(double),
                       absl::string_view none) {
  insight::LineChart chart;
  chart.description = std::string(title);
  chart.x_name = "step";
  chart.y_text = text;
  chart.equals = true;
  bool smoothed = false;
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    const std::vector<CurvePoint>& points = comparison.runs[i].*curve;
    smoothed |= points.size() >= kSmoothedFrom;
    std::string style = absl::StrCat("run c", i % kColours);
    if (i >= kColours) absl::StrAppend(&style, " dash", i / kColours);
    chart.series.push_back({LetterOf(i), std::move(style), DrawnPoints(points)});
  }
  std::string body = insight::RenderLineChart(chart);
  if (body.empty()) return Section("half", title, Sentence(none));
  if (smoothed) body += "<p class=\"note\">Running medians of long curves.</p>\n";
  return Section("half", title, body);
}

std::string ShareText(double share) { return insight::PercentText(100 * share); }

}  // namespace

std::string ToHtml(const Comparison& comparison) {
  return absl::StrCat("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n",
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n",
                      "<title>Comparison of runs</title>\n<style>", insight::kPageStyle,
                      kComparisonStyle, "</style>\n</head>\n<body>\n<main>\n",
                      TitleHtml(comparison), RunsHtml(comparison), PricesHtml(comparison),
                      DifferencesHtml(comparison), FiguresHtml(comparison), TimesHtml(comparison),
                      CurvesHtml(comparison, "Training loss", &RunReport::losses,
                                 insight::NumberText, "No run has a loss curve."),
                      CurvesHtml(comparison, "Accuracy", &RunReport::accuracies, ShareText,
                                 "No run was evaluated."),
                      "</main>\n</body>\n</html>\n");
}

}  // namespace hetero::compare
