#include "cli/list_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "api/job_words.h"
#include "cli/text.h"

namespace hetero::cli {
namespace {

constexpr char kNone[] = "-";

// What is said in the place of figures; `brief` where there is no room for the whole.
struct Note {
  std::string brief;
  std::string whole;
};

bool HasFigures(const JobView& view) {
  return !view.deleting && view.remark.empty() && api::ShowsFigures(view.status);
}

Note NoteOf(const JobView& view) {
  if (!view.remark.empty()) return {view.remark, view.remark};
  const std::string remark = Plain(api::RemarkOn(view.status, view.deleting, view.managed_by));
  if (!remark.empty()) return {remark, remark};
  const std::string why = Telling(view);
  if (!view.status.Is(api::ConditionType::kQueued) || view.place.empty()) return {why, why};
  const std::string place = "queued " + Plain(view.place);
  return {place, why.empty() ? place : absl::StrCat(place, ": ", why)};
}

std::string Fitting(const Note& note, size_t room, bool unlimited) {
  if (unlimited || Columns(note.whole) <= room) return note.whole;
  return Columns(note.brief) <= room ? note.brief : Cut(note.brief, std::max<size_t>(room, 1));
}

std::string PercentOf(double share) { return absl::StrFormat("%.1f%%", share); }

Row Figures(const JobView& view) {
  const api::JobProgress& progress = *view.status.progress;
  const bool total = progress.total_steps > 0;
  Row row = {
      total ? absl::StrCat(progress.step, "/", progress.total_steps) : absl::StrCat(progress.step),
      total ? absl::StrFormat("%.0f%%", 100.0 * static_cast<double>(progress.step) /
                                            static_cast<double>(progress.total_steps))
            : kNone};
  // Rates of a training that does not run are of the past.
  if (!view.status.Is(api::ConditionType::kRunning)) {
    row.insert(row.end(), {kNone, kNone, kNone});
    return row;
  }
  row.push_back(absl::StrFormat("%.1f", progress.samples_per_second));
  row.push_back(PercentOf(progress.data_wait_percent));
  row.push_back(progress.eta_seconds > 0
                    ? FormatDuration(std::chrono::seconds(progress.eta_seconds))
                    : kNone);
  return row;
}

// The first rule that still holds.
std::string FindingOf(const api::JobStatus& status) {
  for (const api::JobFinding& finding : status.findings) {
    if (finding.active) return Plain(finding.rule);
  }
  return kNone;
}

Row Beginning(const JobView& view, base::WallTime now, const ListStyle& style) {
  const api::JobStatus& status = view.status;
  Row row;
  if (style.namespaces) row.push_back(view.name_space);
  row.insert(row.end(), {view.name, Coloured(view.state(), style.style), absl::StrCat(view.gpus),
                         view.cpu_workers.ToString()});
  if (style.wide) {
    const bool trains = status.progress && status.progress->step > 0;
    row.insert(row.end(), {view.gpu_workers.ToString(), absl::StrCat(status.attempt),
                           absl::StrCat(status.restarts),
                           trains ? absl::StrFormat("%.4g", status.progress->loss) : kNone,
                           status.cost ? absl::StrFormat("%.2f", status.cost->dollars) : kNone,
                           view.queue.empty() ? kNone : Plain(view.queue), FindingOf(status)});
  }
  row.push_back(view.created == base::WallTime() ? kNone : FormatDuration(now - view.created));
  return row;
}

Row Heading(const ListStyle& style) {
  Row row;
  if (style.namespaces) row.push_back("NAMESPACE");
  row.insert(row.end(), {"NAME", "STATE", "GPUS", "WORKERS"});
  if (style.wide) {
    row.insert(row.end(),
               {"TRAINERS", "ATTEMPT", "RESTARTS", "LOSS", "DOLLARS", "QUEUE", "FINDING"});
  }
  row.insert(row.end(), {"AGE", "STEP", "DONE", "SAMPLES/S", "WAIT", "ETA"});
  return row;
}

}  // namespace

std::vector<std::string> ListLines(const std::vector<JobView>& views, base::WallTime now,
                                   const ListStyle& style) {
  const size_t width = std::max(style.style.width, 0);
  std::vector<Row> rows = {Heading(style)};
  std::vector<Note> notes = {{}};
  for (const JobView& view : views) {
    Row row = Beginning(view, now, style);
    notes.push_back(HasFigures(view) ? Note{} : NoteOf(view));
    if (notes.back().whole.empty()) {
      const Row figures = HasFigures(view) ? Figures(view) : Row(5, kNone);
      row.insert(row.end(), figures.begin(), figures.end());
    }
    rows.push_back(std::move(row));
  }
  const std::string table = Table(std::move(rows), width,
                                  {"STEP", "RESTARTS", "ATTEMPT", "TRAINERS", "LOSS", "DOLLARS",
                                   "FINDING", "QUEUE", "AGE", "GPUS", "ETA"});
  std::vector<std::string> lines = absl::StrSplit(table, '\n');
  lines.pop_back();
  size_t begin = lines.front().find(" STEP ");
  if (begin == std::string::npos) begin = lines.front().find(" DONE ");
  for (size_t i = 0; i < lines.size(); ++i) {
    if (notes[i].whole.empty()) continue;
    const size_t filled = Columns(lines[i]);
    const size_t column = begin == std::string::npos ? filled + 2 : std::max(begin + 1, filled + 1);
    lines[i].append(column - filled, ' ');
    lines[i] += Fitting(notes[i], width > column ? width - column : 0, width == 0);
    lines[i] = Cut(lines[i], width);
  }
  return lines;
}

}  // namespace hetero::cli
