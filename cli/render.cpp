#include "cli/render.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hetero::cli {
namespace {

using Row = std::vector<std::string>;

std::string Cut(const std::string& text, size_t width) {
  std::string line = text.substr(0, text.find('\n'));
  if (line.size() <= width) return line;
  return width < 4 ? line.substr(0, width) : line.substr(0, width - 3) + "...";
}

// Columns as wide as their widest cell, two spaces apart, nothing at the ends of lines.
std::string Table(const std::vector<Row>& rows, const std::string& indent) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = indent;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string Coloured(const std::string& state, const Style& style) {
  if (!style.colour) return state;
  const char* code = "33";  // yellow: on its way
  if (state == "Running" || state == "Succeeded") code = "32";
  if (state == "Failed" || state == "Stalled") code = "31";
  return absl::StrCat("\x1b[1;", code, "m", state, "\x1b[0m");
}

std::string Bar(double share, int width) {
  const int full = static_cast<int>(std::clamp(share, 0.0, 1.0) * width);
  return absl::StrCat("[", std::string(full, '#'), std::string(width - full, '.'), "]");
}

std::string RenderProgress(const api::JobProgress& progress, const Style& style) {
  std::string text;
  if (progress.total_steps > 0) {
    const double share = static_cast<double>(progress.step) / progress.total_steps;
    absl::StrAppend(&text, "Progress   ", Bar(share, std::clamp(style.width - 50, 10, 40)),
                    absl::StrFormat(" %.1f %%", 100 * share), "  step ", progress.step, " of ",
                    progress.total_steps, "\n");
  } else {
    absl::StrAppend(&text, "Progress   step ", progress.step, "\n");
  }
  absl::StrAppend(
      &text,
      absl::StrFormat("Rate       %.1f samples/s, waiting for data %.1f %%, loss %.4g",
                      progress.samples_per_second, progress.data_wait_percent, progress.loss));
  if (progress.eta_seconds > 0) {
    absl::StrAppend(&text, ", ends in ",
                    FormatDuration(std::chrono::seconds(progress.eta_seconds)));
  }
  return text + "\n";
}

std::string RenderRoles(const std::vector<api::RoleCounts>& roles) {
  std::vector<Row> rows = {
      {"ROLE", "DESIRED", "CREATED", "RUNNING", "REGISTERED", "FAILED", "RESTARTS"}};
  for (const api::RoleCounts& role : roles) {
    rows.push_back({role.name, absl::StrCat(role.desired), absl::StrCat(role.created),
                    absl::StrCat(role.running), absl::StrCat(role.registered),
                    absl::StrCat(role.failed), absl::StrCat(role.restarts)});
  }
  return Table(rows, "  ");
}

std::string RenderConditions(const JobView& view, base::WallTime now, const Style& style) {
  std::vector<Row> rows = {{"CONDITION", "STATUS", "SINCE", "REASON"}};
  for (const api::Condition& condition : view.status.conditions) {
    rows.push_back({std::string(api::NameOf(condition.type)),
                    std::string(api::NameOf(condition.status)),
                    FormatDuration(now - condition.last_transition_time), condition.reason});
  }
  std::string text = Table(rows, "  ");
  // What hinders the job, in the operator's own words: missing pods and why, the API's refusals.
  for (const api::Condition& condition : view.status.conditions) {
    if (condition.message.empty()) continue;
    const std::string name(api::NameOf(condition.type));
    absl::StrAppend(&text, "  ", name, ": ",
                    Cut(condition.message, std::max<int>(20, style.width - name.size() - 4)), "\n");
  }
  return text;
}

std::string RenderFailure(const api::FirstFailure& failure) {
  std::string text = absl::StrCat("First failure  pod ", failure.pod);
  if (!failure.role.empty()) absl::StrAppend(&text, ", role ", failure.role);
  if (!failure.node.empty()) absl::StrAppend(&text, ", node ", failure.node);
  if (failure.exit_code) absl::StrAppend(&text, ", exit code ", *failure.exit_code);
  if (failure.signal) absl::StrAppend(&text, ", signal ", *failure.signal);
  if (!failure.reason.empty()) absl::StrAppend(&text, ", ", failure.reason);
  text += "\n";
  for (size_t begin = 0; begin < failure.message.size();) {
    const size_t end = std::min(failure.message.find('\n', begin), failure.message.size());
    absl::StrAppend(&text, "  ", failure.message.substr(begin, end - begin), "\n");
    begin = end + 1;
  }
  return text;
}

std::string RenderResult(const api::JobResult& result) {
  std::vector<Row> rows;
  const auto number = [&](const char* name, const std::optional<double>& value,
                          const char* format) {
    if (!value) return;
    char text[64];
    std::snprintf(text, sizeof(text), format, *value);
    rows.push_back({name, text});
  };
  if (result.steps) rows.push_back({"steps", absl::StrCat(*result.steps)});
  number("loss", result.loss, "%.6g");
  number("accuracy", result.accuracy, "%.4f");
  number("samples/s", result.samples_per_second, "%.1f");
  number("cost", result.cost_dollars, "$%.2f");
  if (!result.stream_digest.empty()) rows.push_back({"stream digest", result.stream_digest});
  if (!result.checkpoint_uri.empty()) rows.push_back({"checkpoint", result.checkpoint_uri});
  if (!result.report_uri.empty()) rows.push_back({"report", result.report_uri});
  return Table(rows, "  ");
}

}  // namespace

std::string FormatDuration(base::Duration duration) {
  const int64_t seconds =
      std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(duration).count());
  if (seconds < 60) return absl::StrCat(seconds, "s");
  if (seconds < 3600) return absl::StrFormat("%dm%02ds", seconds / 60, seconds % 60);
  if (seconds < 48 * 3600) return absl::StrFormat("%dh%02dm", seconds / 3600, seconds / 60 % 60);
  return absl::StrFormat("%dd%02dh", seconds / 86400, seconds / 3600 % 24);
}

std::string RenderStatus(const JobView& view, base::WallTime now, const Style& style) {
  const api::JobStatus& status = view.status;
  std::string text =
      absl::StrCat(view.name_space, "/", view.name, "  ", Coloured(view.state(), style), "  age ",
                   FormatDuration(now - view.created), "  attempt ", status.attempt, "  restarts ",
                   status.restarts, "\n");
  if (!view.managed_by.empty()) {
    absl::StrAppend(&text, "Managed by ", view.managed_by, ": hetero-operator leaves it alone\n");
  } else if (status.observed_generation == 0) {
    text +=
        "No operator has seen this job yet; is hetero-operator running and serving the "
        "namespace?\n";
  } else if (status.observed_generation < view.generation) {
    text += "The operator has not seen the last change yet\n";
  }
  if (view.suspend) text += "Suspended: kubectl hetero resume " + view.name + " lets it go on\n";
  if (!status.registered.empty()) {
    absl::StrAppend(&text, "Registered ", status.registered, "\n");
  }
  if (status.progress) text += RenderProgress(*status.progress, style);
  if (!status.role_statuses.empty()) text += "\n" + RenderRoles(status.role_statuses);
  if (!status.conditions.empty()) text += "\n" + RenderConditions(view, now, style);
  if (status.first_failure) text += "\n" + RenderFailure(*status.first_failure);
  if (status.result) text += "\nResult\n" + RenderResult(*status.result);
  return text;
}

std::string RenderLine(const JobView& view, base::WallTime now) {
  const api::JobStatus& status = view.status;
  std::string text = absl::StrCat(api::FormatTime(now).substr(11, 8), " ", view.state());
  if (status.progress) {
    absl::StrAppend(&text, " step ", status.progress->step, "/", status.progress->total_steps,
                    absl::StrFormat(" %.1f samples/s", status.progress->samples_per_second));
  }
  if (!status.registered.empty()) absl::StrAppend(&text, " registered ", status.registered);
  if (status.restarts > 0) absl::StrAppend(&text, " restarts ", status.restarts);
  for (const api::Condition& condition : status.conditions) {
    const bool tells = (condition.status == api::ConditionStatus::kTrue) ==
                       (condition.type != api::ConditionType::kRegistered);
    if (!tells || condition.message.empty()) continue;
    absl::StrAppend(&text, ": ", Cut(condition.message, 200));
    break;
  }
  return text + "\n";
}

std::string RenderReport(const JobView& view) {
  const api::JobStatus& status = view.status;
  std::string text = absl::StrCat(view.name_space, "/", view.name, "  ", view.state());
  if (status.start_time && status.completion_time) {
    absl::StrAppend(&text, "  took ", FormatDuration(*status.completion_time - *status.start_time));
  }
  absl::StrAppend(&text, "  restarts ", status.restarts, "\n");
  for (const api::Condition& condition : status.conditions) {
    const bool verdict = condition.type == api::ConditionType::kSucceeded ||
                         condition.type == api::ConditionType::kFailed;
    if (!verdict || condition.status != api::ConditionStatus::kTrue) continue;
    absl::StrAppend(&text, condition.reason, ": ", condition.message, "\n");
  }
  if (status.result) text += RenderResult(*status.result);
  if (status.first_failure) text += RenderFailure(*status.first_failure);
  if (!status.result || status.result->report_uri.empty()) {
    text += view.output_uri.empty() ? "No report file: the job names no output.uri\n"
                                    : "No report file was written to " + view.output_uri + "\n";
  }
  return text;
}

}  // namespace hetero::cli
