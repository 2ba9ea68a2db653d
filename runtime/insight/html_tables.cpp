#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "runtime/insight/figures.h"
#include "runtime/insight/html_sections.h"
#include "runtime/insight/html_text.h"

// The parts that are lists: evaluations, the stream, workers, faults, bad samples, configuration.
namespace hetero::insight {
namespace {

std::string Text(absl::string_view text, absl::string_view css_class = "") {
  if (css_class.empty()) return absl::StrCat("<td>", EscapeHtml(text), "</td>");
  return absl::StrCat("<td class=\"", css_class, "\">", EscapeHtml(text), "</td>");
}

std::string Number(absl::string_view text) { return Text(text, "num"); }

// A number with a bar behind it, `share` in 0..1 of the column's largest.
std::string Bar(absl::string_view text, double share) {
  return absl::StrFormat("<td class=\"num bar\" style=\"--share:%.1f%%\">%s</td>",
                         100 * std::clamp(share, 0.0, 1.0), EscapeHtml(text));
}

struct Column {
  absl::string_view name;
  bool number = true;
};

std::string Table(const std::vector<Column>& columns, absl::string_view rows) {
  std::string head;
  for (const Column& column : columns) {
    absl::StrAppend(&head, column.number ? "<th class=\"num\">" : "<th>", column.name, "</th>");
  }
  return absl::StrCat("<div class=\"scroll\"><table>\n<thead><tr>", head,
                      "</tr></thead>\n<tbody>\n", rows, "</tbody>\n</table></div>\n");
}

std::string Entry(absl::string_view name, absl::string_view value,
                  absl::string_view css_class = "") {
  return absl::StrCat("<dt>", EscapeHtml(name), "</dt><dd", css_class.empty() ? "" : " class=\"",
                      css_class, css_class.empty() ? "" : "\"", ">", EscapeHtml(value), "</dd>\n");
}

double Share(double value, double largest) {
  return largest > 0 && std::isfinite(value) ? value / largest : 0;
}

std::string WorkerRow(const ReportWorker& worker, const ReportWorker& largest, bool nodes) {
  const double per_sample =
      worker.samples > 0 ? worker.cpu_seconds / static_cast<double>(worker.samples) : -1;
  return absl::StrCat(
      "<tr>", Text(worker.name), Text(worker.role), nodes ? Text(worker.node) : "",
      Number(CountText(worker.batches)),
      Bar(CountText(worker.samples),
          Share(static_cast<double>(worker.samples), static_cast<double>(largest.samples))),
      Bar(BytesText(static_cast<double>(worker.bytes)),
          Share(static_cast<double>(worker.bytes), static_cast<double>(largest.bytes))),
      Bar(DurationText(worker.cpu_seconds), Share(worker.cpu_seconds, largest.cpu_seconds)),
      Number(per_sample < 0 ? "" : DurationText(per_sample)),
      Number(worker.peak_rss_bytes > 0 ? BytesText(static_cast<double>(worker.peak_rss_bytes))
                                       : ""),
      Text(CountText(worker.restarts), worker.restarts > 0 ? "num hot" : "num"), "</tr>\n");
}

}  // namespace

std::string EvaluationsHtml(const Report& report) {
  if (report.evaluations.empty()) {
    return Section("half", "Evaluations", Sentence("No evaluation took place."));
  }
  double best = 0;
  for (const ReportEvaluation& evaluation : report.evaluations) {
    if (std::isfinite(evaluation.accuracy)) best = std::max(best, evaluation.accuracy);
  }
  std::string rows;
  for (const ReportEvaluation& evaluation : report.evaluations) {
    absl::StrAppend(&rows, "<tr>", Number(CountText(evaluation.epoch)),
                    Number(CountText(evaluation.step)),
                    Number(std::isfinite(evaluation.loss) ? NumberText(evaluation.loss) : ""),
                    Bar(std::isfinite(evaluation.accuracy)
                            ? absl::StrCat(FixedText(100 * evaluation.accuracy, 2), " %")
                            : "-",
                        Share(evaluation.accuracy, best)),
                    Number(evaluation.samples > 0 ? CountText(evaluation.samples) : ""), "</tr>\n");
  }
  return Section("half", "Evaluations",
                 Table({{"After epoch"}, {"Step"}, {"Loss"}, {"Accuracy"}, {"Samples"}}, rows));
}

std::string StreamHtml(const Report& report) {
  std::string entries;
  if (report.samples_consumed.has_value()) {
    entries += Entry("samples consumed", CountText(*report.samples_consumed));
  }
  entries += Entry("tickets issued again", CountText(report.tickets_reissued));
  entries += Entry("duplicates dropped", CountText(report.duplicates_dropped));
  entries += Entry("bad samples replaced", CountText(report.bad_samples));
  std::vector<std::string> cpu_times;
  for (const auto& [role, seconds] : report.cpu_seconds_per_sample) {
    cpu_times.push_back(absl::StrCat(role, " ", DurationText(seconds)));
  }
  if (!cpu_times.empty()) entries += Entry("CPU time per sample", absl::StrJoin(cpu_times, ", "));
  if (report.storage) {
    const ReportStorage& storage = *report.storage;
    std::string text = absl::StrCat(CountText(storage.requests), " requests");
    if (storage.retries > 0) {
      absl::StrAppend(&text, ", ", CountText(storage.retries), " of them again");
    }
    absl::StrAppend(&text, "; ", BytesText(static_cast<double>(storage.bytes)));
    if (storage.dollars) absl::StrAppend(&text, "; $", NumberText(*storage.dollars));
    entries += Entry("object stores", text);
    for (const ReportOrder& order : storage.orders) {
      std::string would = absl::StrCat(CountText(order.requests), " requests");
      if (order.bytes) {
        absl::StrAppend(&would, "; ", BytesText(static_cast<double>(*order.bytes)));
      }
      if (order.dollars) absl::StrAppend(&would, "; $", NumberText(*order.dollars));
      const bool own = &order == &storage.orders.front();
      entries +=
          Entry(absl::StrCat("samples in order ", order.shuffle, own ? "" : " (not used)"), would);
    }
  }
  entries += Entry("seed", absl::StrCat(report.seed));
  if (report.stream_digest.has_value()) {
    entries += Entry("stream digest", *report.stream_digest, "mono");
  }
  if (report.checkpoint_uri.has_value()) {
    entries += Entry("checkpoint", *report.checkpoint_uri, "mono");
  }
  std::string body = absl::StrCat("<dl>\n", entries, "</dl>\n");
  if (report.stream_digest.has_value()) {
    body +=
        "<p class=\"note\">Two runs with the same digest consumed the same samples, bit for "
        "bit, in the same steps.</p>\n";
  }
  return Section("half", "Input stream", body);
}

std::string ReportedHtml(const Report& report) {
  if (report.reported.empty()) return "";
  std::string rows;
  for (const auto& [name, value] : report.reported) {
    absl::StrAppend(&rows, "<tr>", Text(name), Number(NumberText(value)), "</tr>\n");
  }
  return Section("half", "Reported by the script",
                 Table({{"Name", false}, {"Latest value"}}, rows));
}

std::string WorkersHtml(const Report& report) {
  if (report.workers.empty()) {
    return Section("", "Workers", Sentence("No worker registered with the head."));
  }
  std::map<std::string, ReportWorker> largest_of;  // by role: bars compare workers of one kind
  bool nodes = false;
  for (const ReportWorker& worker : report.workers) {
    ReportWorker& largest = largest_of[worker.role];
    largest.samples = std::max(largest.samples, worker.samples);
    largest.bytes = std::max(largest.bytes, worker.bytes);
    largest.cpu_seconds = std::max(largest.cpu_seconds, worker.cpu_seconds);
    nodes |= !worker.node.empty();
  }
  std::string rows;
  for (const ReportWorker& worker : report.workers) {
    rows += WorkerRow(worker, largest_of[worker.role], nodes);
  }
  std::vector<Column> columns = {{"Worker", false}, {"Role", false}};
  if (nodes) columns.push_back({"Node", false});
  for (absl::string_view name :
       {"Batches", "Samples", "Data", "CPU time", "CPU per sample", "Peak memory", "Restarts"}) {
    columns.push_back({name});
  }
  return Section("", "Workers", Table(columns, rows));
}

std::string AttemptsHtml(const Report& report) {
  if (report.attempts.size() < 2) return "";
  std::string rows;
  for (const ReportAttempt& attempt : report.attempts) {
    absl::StrAppend(&rows, "<tr>", Number(CountText(attempt.attempt)), Text(attempt.time, "mono"),
                    Number(DurationText(attempt.seconds)), Text(attempt.cause, "wide"), "</tr>\n");
  }
  return Section(
      "", "Attempts",
      Table({{"Attempt"}, {"Began (UTC)", false}, {"Ran for"}, {"Because", false}}, rows));
}

std::string FaultsHtml(const Report& report) {
  if (report.faults.empty()) return Section("", "Faults", Sentence("No fault was recorded."));
  std::string rows;
  for (const ReportFault& fault : report.faults) {
    absl::StrAppend(
        &rows, "<tr>", Text(fault.time, "mono"), Text(fault.what, "wide"),
        Number(fault.recovery_seconds.has_value() ? DurationText(*fault.recovery_seconds) : ""),
        "</tr>\n");
  }
  return Section("", "Faults",
                 Table({{"Time (UTC)", false}, {"What", false}, {"Recovered after"}}, rows));
}

std::string DisruptionsHtml(const Report& report) {
  if (report.disruptions.empty()) return "";
  std::string rows;
  for (const ReportDisruption& disruption : report.disruptions) {
    const bool saved = disruption.checkpoint_seconds.has_value();
    absl::StrAppend(&rows, "<tr>", Text(disruption.time, "mono"), Text(disruption.member),
                    Text(disruption.sign, "wide"),
                    Number(saved ? DurationText(*disruption.checkpoint_seconds) : ""),
                    Number(saved ? CountText(disruption.checkpoint_step) : ""), "</tr>\n");
  }
  std::string body = Table(
      {{"Time (UTC)", false}, {"Member", false}, {"Sign", false}, {"Saved after"}, {"At step"}},
      rows);
  absl::StrAppend(&body, "<p class=\"note\">Steps done again in all: ",
                  CountText(report.steps_redone.value_or(0)), ".</p>\n");
  return Section("", "Machines that were about to go", body);
}

std::string BadSamplesHtml(const Report& report) {
  if (report.bad_sample_list.empty()) {
    return Section("", "Bad samples",
                   Sentence(report.bad_samples == 0
                                ? "No bad sample was met."
                                : absl::StrCat(CountText(report.bad_samples),
                                               " samples were replaced; none was listed.")));
  }
  std::string rows;
  for (const ReportBadSample& sample : report.bad_sample_list) {
    absl::StrAppend(&rows, "<tr>", Number(CountText(sample.sample_id)),
                    Number(CountText(sample.replacement_id)), Text(sample.reason, "wide"),
                    "</tr>\n");
  }
  std::string body = Table({{"Sample"}, {"Replaced by"}, {"Reason", false}}, rows);
  const auto listed = static_cast<int64_t>(report.bad_sample_list.size());
  if (report.bad_samples > listed) {
    absl::StrAppend(&body, "<p class=\"note\">The first ", CountText(listed), " of ",
                    CountText(report.bad_samples), ".</p>\n");
  }
  return Section("", "Bad samples", body);
}

std::string ConfigurationHtml(const Report& report) {
  if (report.config_json.empty()) return "";
  const auto config = nlohmann::ordered_json::parse(report.config_json, /*cb=*/nullptr,
                                                    /*allow_exceptions=*/false);
  const std::string text =
      config.is_discarded()
          ? report.config_json
          : config.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return absl::StrCat("<section><details><summary>Configuration as run</summary>\n<pre>",
                      EscapeHtml(text), "</pre>\n</details></section>\n");
}

std::string VersionsHtml(const Report& report) {
  if (report.versions.empty()) return "";
  std::string entries;
  for (const auto& [name, version] : report.versions) entries += Entry(name, version);
  return absl::StrCat("<section><details><summary>Versions</summary>\n<dl>\n", entries,
                      "</dl>\n</details></section>\n");
}

}  // namespace hetero::insight
