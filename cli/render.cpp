#include "cli/render.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "api/job_words.h"
#include "cli/sections.h"
#include "cli/text.h"

namespace hetero::cli {
namespace {

constexpr base::Duration kPromptly = std::chrono::seconds(3);  // an operator sees a new job
constexpr base::Duration kFresh = std::chrono::seconds(30);    // the operator writes every 5 s

std::string Bar(double share, int width) {
  const int full = static_cast<int>(std::clamp(share, 0.0, 1.0) * width);
  return absl::StrCat("[", std::string(full, '#'), std::string(width - full, '.'), "]");
}

bool Known(base::WallTime time) { return time != base::WallTime(); }

// From the job's creation: status.startTime begins anew with each resume.
std::string Took(const JobView& view) {
  const api::JobStatus& status = view.status;
  const base::WallTime begin =
      Known(view.created) ? view.created : status.start_time.value_or(base::WallTime());
  if (!Known(begin) || !status.completion_time) return "";
  return "took " + FormatDuration(*status.completion_time - begin);
}

}  // namespace

std::string RenderHead(const JobView& view, base::WallTime now, const Style& style) {
  const api::JobStatus& status = view.status;
  std::vector<std::string> pieces = {view.name_space + "/" + view.name,
                                     Coloured(view.state(), style)};
  if (const std::string took = Took(view); status.finished() && !took.empty()) {
    pieces.push_back(took);
  } else if (Known(view.created)) {
    pieces.push_back("age " + FormatDuration(now - view.created));
  }
  if (!status.registered.empty()) pieces.push_back("registered " + status.registered);
  if (status.attempt > 1) pieces.push_back(absl::StrCat("attempt ", status.attempt));
  pieces.push_back(absl::StrCat("restarts ", status.restarts));
  return Flow(pieces, style.width, 2);
}

std::string RenderHints(const JobView& view, base::WallTime now, const Style& style) {
  const api::JobStatus& status = view.status;
  std::string hint;
  if (view.deleting) {
    hint = "It is being deleted";
  } else if (!view.managed_by.empty()) {
    hint = "Managed by " + Plain(view.managed_by) + ": hetero-operator leaves it alone";
  } else if (status.observed_generation == 0) {
    if (now - view.created < kPromptly) return "";
    hint =
        "No operator has seen this job yet; is hetero-operator running and serving the namespace?";
  } else if (status.observed_generation < view.generation) {
    hint = "The operator has not seen the last change yet";
  } else if (view.suspend && !status.finished()) {
    hint = "Suspended: kubectl hetero resume " + view.name + " lets it go on";
  }
  if (hint.empty()) return "";
  std::string text;
  for (const std::string& line : Wrap(hint, style.width, 2)) text += line + "\n";
  return text;
}

std::string RenderProgress(const JobView& view, base::WallTime now, const Style& style) {
  if (!view.status.progress || view.status.progress->step <= 0) return "";
  const api::JobProgress& progress = *view.status.progress;
  constexpr size_t kIndent = 10;
  std::vector<std::string> pieces;
  if (progress.total_steps > 0) {
    const double share = static_cast<double>(progress.step) / progress.total_steps;
    const int room = style.width == 0 ? 80 : style.width;
    pieces = {absl::StrCat("Progress  ", Bar(share, std::clamp(room - 50, 10, 40)),
                           absl::StrFormat(" %.1f %%", 100 * share)),
              absl::StrCat("step ", progress.step, " of ", progress.total_steps)};
  } else {
    pieces = {absl::StrCat("Progress  step ", progress.step)};
  }
  if (progress.epoch > 0) pieces.push_back(absl::StrCat("epoch ", progress.epoch));
  std::string text = Flow(pieces, style.width, kIndent);
  // Rates of a training that does not run are of the past.
  if (!view.status.Is(api::ConditionType::kRunning)) return text;
  pieces = {absl::StrFormat("Rate      %.1f samples/s", progress.samples_per_second),
            absl::StrFormat("waiting for data %.1f %%", progress.data_wait_percent),
            absl::StrFormat("loss %.4g", progress.loss)};
  if (progress.eta_seconds > 0) {
    pieces.push_back("ends in " + FormatDuration(std::chrono::seconds(progress.eta_seconds)));
  }
  const base::Duration old = now - progress.last_update_time;
  if (Known(progress.last_update_time) && old > kFresh) {
    pieces.push_back("(" + FormatDuration(old) + " ago)");
  }
  return text + Flow(pieces, style.width, kIndent);
}

namespace {

std::string RenderRoles(const std::vector<api::RoleCounts>& roles, const Style& style) {
  std::vector<Row> rows = {
      {"ROLE", "DESIRED", "CREATED", "RUNNING", "REGISTERED", "FAILED", "RESTARTS"}};
  for (const api::RoleCounts& role : roles) {
    rows.push_back({Plain(role.name), absl::StrCat(role.desired), absl::StrCat(role.created),
                    absl::StrCat(role.running), absl::StrCat(role.registered),
                    absl::StrCat(role.failed), absl::StrCat(role.restarts)});
  }
  return Table(std::move(rows), style.width, {"CREATED", "FAILED", "RESTARTS", "RUNNING"});
}

std::string RenderConditions(const JobView& view, base::WallTime now, const Style& style) {
  std::vector<Row> rows = {{"CONDITION", "STATUS", "SINCE", "REASON"}};
  for (const api::Condition& condition : view.status.conditions) {
    rows.push_back({std::string(api::NameOf(condition.type)),
                    std::string(api::NameOf(condition.status)),
                    FormatDuration(now - condition.last_transition_time), Plain(condition.reason)});
  }
  return Table(std::move(rows), style.width, {"SINCE"});
}

}  // namespace

std::string Coloured(const std::string& state, const Style& style) {
  if (!style.colour) return state;
  const char* code = "33";  // yellow: on its way
  if (state == "Running" || state == "Succeeded") code = "32";
  if (state == "Failed" || state == "Stalled") code = "31";
  return absl::StrCat("\x1b[1;", code, "m", state, "\x1b[0m");
}

std::string Telling(const JobView& view) {
  return Cut(Plain(api::TellingLineOf(view.status)), 1000);
}

std::string FormatDuration(base::Duration duration) {
  const int64_t seconds =
      std::max<int64_t>(std::chrono::duration_cast<std::chrono::seconds>(duration).count(), 0);
  if (seconds < 60) return absl::StrCat(seconds, "s");
  if (seconds < 3600) return absl::StrFormat("%dm%02ds", seconds / 60, seconds % 60);
  const int64_t hours = seconds / 3600;
  if (hours < 48) return absl::StrFormat("%dh%02dm", hours, seconds / 60 % 60);
  return absl::StrFormat("%dd%02dh", hours / 24, hours % 24);
}

std::string RenderStatus(const JobView& view, base::WallTime now, const Style& style) {
  const api::JobStatus& status = view.status;
  std::string text = RenderHead(view, now, style) + RenderHints(view, now, style);
  const auto section = [&text](const std::string& lines) {
    if (!lines.empty()) text += "\n" + lines;
  };
  text += RenderProgress(view, now, style);
  section(RenderMessages(view, style));
  section(RenderFailure(view, style));
  section(RenderFindings(view, style));
  if (status.result) section("Result\n" + RenderResult(*status.result, style));
  if (!status.role_statuses.empty()) section(RenderRoles(status.role_statuses, style));
  if (!status.conditions.empty()) section(RenderConditions(view, now, style));
  return text;
}

std::string RenderLine(const JobView& view, base::WallTime now) {
  const api::JobStatus& status = view.status;
  std::string text = absl::StrCat(api::FormatTime(now), " ", view.state());
  if (view.deleting) text += ", being deleted";
  if (!view.place.empty()) text += " " + view.place;
  if (status.progress && status.progress->step > 0) {
    absl::StrAppend(&text, " step ", status.progress->step, "/", status.progress->total_steps,
                    absl::StrFormat(" %.1f samples/s", status.progress->samples_per_second));
  }
  if (!status.registered.empty()) absl::StrAppend(&text, " registered ", status.registered);
  if (status.restarts > 0) absl::StrAppend(&text, " restarts ", status.restarts);
  const std::string why = Telling(view);
  return text + (why.empty() ? "" : ": " + why) + "\n";
}

std::string RenderReport(const JobView& view, const Style& style) {
  const api::JobStatus& status = view.status;
  std::vector<std::string> pieces = {view.name_space + "/" + view.name,
                                     Coloured(view.state(), style)};
  if (const std::string took = Took(view); !took.empty()) pieces.push_back(took);
  if (status.attempt > 1) pieces.push_back(absl::StrCat("attempt ", status.attempt));
  pieces.push_back(absl::StrCat("restarts ", status.restarts));
  std::string text = Flow(pieces, style.width, 2) + RenderMessages(view, style);
  text += RenderFailure(view, style) + RenderFindings(view, style);
  if (status.result) text += "Result\n" + RenderResult(*status.result, style);
  const std::string file = status.result ? status.result->report_uri : "";
  std::string where;
  if (file.starts_with("file://")) {
    where = absl::StrCat("The report is on a volume of the pods; kubectl hetero report ", view.name,
                         " --save FOLDER fetches it");
  } else if (!file.empty()) {
    where = "The report is " + Plain(file);
  } else if (view.output_uri.empty()) {
    where = "No report file: the job names no output.uri";
  } else {
    where = "No report file was written to " + Plain(view.output_uri);
  }
  if (!where.empty()) {
    for (const std::string& line : Wrap(where, style.width, 2)) text += line + "\n";
  }
  return text;
}

}  // namespace hetero::cli
