#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "runtime/insight/figures.h"
#include "runtime/insight/html_sections.h"
#include "runtime/insight/html_text.h"
#include "runtime/insight/line_chart.h"

// The parts about time and learning: step-time split, loss, seconds per step.
namespace hetero::insight {
namespace {

// From this number of points on, a single step says little and a running median is drawn as well.
constexpr size_t kSmoothedFrom = 40;

struct Phase {
  absl::string_view key;  // CSS colour and report.json's name
  absl::string_view name;
  double seconds;
};

std::vector<Phase> Phases(const Report& report) {
  const PhaseSeconds& p = *report.phase_seconds;
  std::vector<Phase> phases = {{"wait", "data wait", p.wait},
                               {"hostToDevice", "host to device", p.host_to_device},
                               {"forward", "forward", p.forward},
                               {"backward", "backward", p.backward},
                               {"allReduce", "all-reduce", p.all_reduce},
                               {"optimizer", "optimizer", p.optimizer},
                               {"checkpoint", "checkpoint", p.checkpoint},
                               {"evaluation", "evaluation", p.evaluation},
                               {"other", "other", p.other}};
  double sum = 0;
  for (Phase& phase : phases) {
    if (!std::isfinite(phase.seconds) || phase.seconds < 0) phase.seconds = 0;
    sum += phase.seconds;
  }
  // What no phase claims is shown rather than spread over the others.
  const double rest = report.train_seconds.value_or(sum) - sum;
  if (rest > 0.005 * sum) phases.push_back({"other", "not attributed", rest});
  return phases;
}

// The measured curve, with a running median over it when it is long enough to be noisy.
std::vector<ChartSeries> Curve(absl::string_view name, std::vector<ChartPoint> points) {
  if (points.size() < kSmoothedFrom) {
    return {{std::string(name), "line", std::move(points)}};
  }
  const int window = static_cast<int>(std::max<size_t>(9, points.size() / 25)) | 1;
  ChartSeries median = {absl::StrCat("median of ", window, " points"), "smooth",
                        RunningMedian(points, window)};
  return {{std::string(name), "raw", std::move(points)}, std::move(median)};
}

double Quantile(std::vector<double> sorted, double share) {
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

}  // namespace

std::string StepTimeHtml(const Report& report) {
  constexpr absl::string_view kTitle = "Where the time of rank 0 went";
  double total = 0;
  std::vector<Phase> phases;
  if (report.phase_seconds.has_value()) phases = Phases(report);
  for (const Phase& phase : phases) total += phase.seconds;
  if (total <= 0) return Section("", kTitle, Sentence("No step was timed in this run."));

  std::string bar, legend;
  for (const Phase& phase : phases) {
    const double percent = 100 * phase.seconds / total;
    if (percent <= 0 && phase.key != "wait") continue;
    if (percent > 0) {
      absl::StrAppendFormat(&bar,
                            "<i style=\"flex:%.4f 0 0;background:var(--p-%s)\" title=\"%s: %s, "
                            "%s\"></i>\n",
                            percent, phase.key, phase.name, DurationText(phase.seconds),
                            PercentText(percent));
    }
    absl::StrAppend(&legend, "<li><i style=\"background:var(--p-", phase.key, ")\"></i><span>",
                    phase.name, "</span><span>", DurationText(phase.seconds), "</span><span>",
                    PercentText(percent), "</span></li>\n");
  }
  return Section("", kTitle,
                 absl::StrCat("<p class=\"sub\">", DurationText(total),
                              " from the first batch asked for to the end of training</p>\n",
                              "<div class=\"split\">\n", bar, "</div>\n<ul class=\"phases\">\n",
                              legend, "</ul>\n", WaitCausesHtml(report)));
}

std::string LossHtml(const Report& report) {
  std::vector<ChartPoint> points;
  for (const ReportLoss& loss : report.loss_curve) {
    points.push_back({static_cast<double>(loss.step), loss.loss});
  }
  LineChart chart;
  chart.description = "Training loss over steps";
  chart.x_name = "step";
  chart.y_text = NumberText;
  chart.series = Curve("training loss", std::move(points));
  ChartSeries evaluations = {"validation loss", "dots", {}};
  for (const ReportEvaluation& evaluation : report.evaluations) {
    if (!std::isfinite(evaluation.loss)) continue;  // a script told the accuracy alone
    evaluations.points.push_back({static_cast<double>(evaluation.step), evaluation.loss});
  }
  chart.series.push_back(std::move(evaluations));
  std::string body = RenderLineChart(chart);
  if (body.empty()) {
    body = Sentence(report.steps.value_or(0) > 0
                        ? "No loss was reported."
                        : "No training step was completed, so there is no loss.");
  }
  return Section("half", "Loss", body);
}

std::string StepSecondsHtml(const Report& report) {
  std::vector<ChartPoint> points;
  std::vector<double> seconds;
  for (const ReportLoss& loss : report.loss_curve) {
    points.push_back({static_cast<double>(loss.step), loss.seconds_per_step});
    if (std::isfinite(loss.seconds_per_step)) seconds.push_back(loss.seconds_per_step);
  }
  if (seconds.empty()) return Section("half", "Time per step", Sentence("No step was timed."));
  std::sort(seconds.begin(), seconds.end());
  LineChart chart;
  chart.description = "Time per step over steps";
  chart.x_name = "step";
  chart.y_text = DurationText;
  chart.series = Curve(absl::StrCat("time per step (median ", DurationText(Quantile(seconds, 0.5)),
                                    ", 95 % below ", DurationText(Quantile(seconds, 0.95)), ")"),
                       std::move(points));
  return Section("half", "Time per step", RenderLineChart(chart));
}

}  // namespace hetero::insight
