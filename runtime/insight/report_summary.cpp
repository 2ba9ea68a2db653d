#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "runtime/insight/figures.h"
#include "runtime/insight/finding_text.h"
#include "runtime/insight/python_cost.h"
#include "runtime/insight/report.h"

namespace hetero::insight {
namespace {

void AddLine(std::string& text, absl::string_view name, absl::string_view value) {
  if (!value.empty()) absl::StrAppendFormat(&text, "  %-11s %s\n", name, value);
}

std::string Headline(const Report& report) {
  std::string text = absl::StrCat(report.job.empty() ? "job" : report.job, ": ", report.state);
  if (Known(report.wall_seconds)) {
    absl::StrAppend(&text, " after ", DurationText(*report.wall_seconds));
  }
  std::vector<std::string> parts;
  if (Known(report.startup_seconds)) {
    parts.push_back(absl::StrCat("first step after ", DurationText(*report.startup_seconds)));
  }
  if (Known(report.train_seconds)) {
    parts.push_back(absl::StrCat("training ", DurationText(*report.train_seconds)));
  }
  if (report.attempts.size() > 1) {
    double ran = 0;
    for (const ReportAttempt& attempt : report.attempts) ran += attempt.seconds;
    parts.push_back(absl::StrCat(DurationText(ran), " in ", report.attempts.size(), " attempts"));
  }
  if (!parts.empty()) absl::StrAppend(&text, " (", absl::StrJoin(parts, ", "), ")");
  return text + "\n";
}

std::string Steps(const Report& report) {
  if (!report.steps.has_value()) return "";
  std::string text = CountText(*report.steps);
  if (report.epochs.has_value()) {
    absl::StrAppend(&text, " in ", CountText(*report.epochs),
                    *report.epochs == 1 ? " epoch" : " epochs");
  }
  if (report.samples_consumed.has_value()) {
    absl::StrAppend(&text, ", ", CountText(*report.samples_consumed), " samples");
  }
  return text;
}

std::string Throughput(const Report& report) {
  if (!Known(report.samples_per_second)) return "";
  std::string text = absl::StrCat(NumberText(*report.samples_per_second), " samples/s");
  if (Known(report.ceiling_samples_per_second)) {
    absl::StrAppend(&text, " of ", NumberText(*report.ceiling_samples_per_second),
                    " without input");
  }
  if (Known(report.data_wait_percent)) {
    absl::StrAppend(&text, ", ", PercentText(*report.data_wait_percent), " waiting for data");
  }
  return text;
}

std::string Accuracy(const Report& report) {
  if (!Known(report.accuracy)) return "";
  std::string text = PercentText(*report.accuracy * 100);
  if (!report.evaluations.empty() && report.evaluations.back().samples > 0) {
    absl::StrAppend(&text, " of ", CountText(report.evaluations.back().samples),
                    " validation samples");
  }
  return text;
}

std::string Reported(const Report& report) {
  constexpr size_t kMostNamed = 8;
  std::vector<std::string> parts;
  for (const auto& [name, value] : report.reported) {
    if (parts.size() == kMostNamed) break;
    parts.push_back(absl::StrCat(name, " ", NumberText(value)));
  }
  if (parts.size() < report.reported.size()) parts.push_back("...");
  return absl::StrJoin(parts, ", ");
}

std::string CpuTime(const Report& report) {
  std::vector<std::string> parts;
  for (const auto& [role, seconds] : report.cpu_seconds_per_sample) {
    if (!std::isfinite(seconds)) continue;
    parts.push_back(absl::StrCat(role, " ", DurationText(seconds)));
  }
  return parts.empty() ? "" : absl::StrCat(absl::StrJoin(parts, ", "), " per sample");
}

std::string Waits(const Report& report) {
  if (!report.wait_seconds || !report.phase_seconds) return "";
  const WaitSeconds& w = *report.wait_seconds;
  const double all = w.no_worker + w.workers + w.transfer + w.handover;
  const double train = report.train_seconds.value_or(0);
  if (!(all > 0.01 * train)) return "";
  std::vector<std::string> parts;
  const auto add = [&](double seconds, absl::string_view what) {
    if (seconds >= 0.05 * all) parts.push_back(absl::StrCat(DurationText(seconds), " ", what));
  };
  add(w.workers, "for CPU workers at work");
  add(w.no_worker, "without a CPU worker");
  add(w.transfer, "for data on its way");
  add(w.handover, "for a core of the trainer");
  return absl::StrJoin(parts, ", ");
}

// Only what went wrong on the way; nothing at all on an undisturbed run.
std::string Disturbances(const Report& report) {
  std::vector<std::string> parts;
  auto add = [&parts](int64_t count, absl::string_view one, absl::string_view many) {
    if (count > 0) parts.push_back(absl::StrCat(CountText(count), " ", count == 1 ? one : many));
  };
  add(static_cast<int64_t>(report.faults.size()), "fault", "faults");
  add(static_cast<int64_t>(report.disruptions.size()), "notice of a machine that goes",
      "notices of machines that go");
  add(report.steps_redone.value_or(0), "step done again", "steps done again");
  add(report.script_restarts.value_or(0), "restart of the scripts", "restarts of the scripts");
  add(report.tickets_reissued, "ticket issued again", "tickets issued again");
  add(report.duplicates_dropped, "duplicate dropped", "duplicates dropped");
  add(report.bad_samples, "bad sample replaced", "bad samples replaced");
  return absl::StrJoin(parts, ", ");
}

}  // namespace

std::string ToSummary(const Report& report) {
  std::string text = Headline(report);
  AddLine(text, "reason", report.message);
  AddLine(text, "steps", Steps(report));
  AddLine(text, "speed", Throughput(report));
  AddLine(text, "waited", Waits(report));
  AddLine(text, "loss", Known(report.loss) ? NumberText(*report.loss) : "");
  AddLine(text, "accuracy", Accuracy(report));
  AddLine(text, "reported", Reported(report));
  AddLine(text, "cpu time", CpuTime(report));
  for (const std::string& cost : PythonCosts(report)) AddLine(text, "python", cost);
  AddLine(text, "on the way", Disturbances(report));
  AddLine(text, "digest",
          report.digest_problem.empty() ? report.stream_digest.value_or("")
                                        : absl::StrCat("not proven: ", report.digest_problem));
  AddLine(text, "cost",
          Known(report.cost_dollars) ? absl::StrCat("$", FixedText(*report.cost_dollars, 4)) : "");
  AddLine(text, "verdict", report.verdict.value_or(""));
  constexpr size_t kMostNamed = 3;
  for (size_t i = 0; i < std::min(report.findings.size(), kMostNamed); ++i) {
    AddLine(text, "to change", FindingLine(report.findings[i]));
  }
  AddLine(text, "checkpoint", report.checkpoint_uri.value_or(""));
  AddLine(text, "warning", report.checkpoint_problem.value_or(""));
  return text;
}

}  // namespace hetero::insight
