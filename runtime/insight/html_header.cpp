#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "runtime/insight/figures.h"
#include "runtime/insight/html_sections.h"
#include "runtime/insight/html_text.h"

namespace hetero::insight {
namespace {

std::string Tile(absl::string_view name, absl::string_view value, absl::string_view detail = "") {
  return absl::StrCat("<div class=\"tile\"><span>", name, "</span><b>", EscapeHtml(value),
                      "</b><span>", EscapeHtml(detail), "</span></div>\n");
}

std::string SpeedTiles(const Report& report) {
  std::string tiles;
  if (Known(report.samples_per_second)) {
    tiles +=
        Tile("samples per second", NumberText(*report.samples_per_second),
             Known(report.ceiling_samples_per_second)
                 ? absl::StrCat(NumberText(*report.ceiling_samples_per_second), " without input")
                 : "");
  }
  if (Known(report.data_wait_percent)) {
    tiles += Tile("waiting for data", PercentText(*report.data_wait_percent), "of training time");
  }
  return tiles;
}

std::string LearningTiles(const Report& report) {
  std::string tiles;
  if (Known(report.accuracy)) {
    tiles += Tile(
        "accuracy", PercentText(*report.accuracy * 100),
        report.evaluations.empty() || report.evaluations.back().samples == 0
            ? ""
            : absl::StrCat(CountText(report.evaluations.back().samples), " validation samples"));
  }
  if (Known(report.loss)) tiles += Tile("loss", NumberText(*report.loss), "mean of the last epoch");
  if (report.steps.has_value()) {
    std::vector<std::string> parts;
    if (report.epochs.has_value()) {
      parts.push_back(
          absl::StrCat(CountText(*report.epochs), *report.epochs == 1 ? " epoch" : " epochs"));
    }
    if (report.samples_consumed.has_value()) {
      parts.push_back(absl::StrCat(CountText(*report.samples_consumed), " samples"));
    }
    tiles += Tile("steps", CountText(*report.steps), absl::StrJoin(parts, ", "));
  }
  return tiles;
}

std::string TimeTiles(const Report& report) {
  std::string tiles;
  if (Known(report.wall_seconds)) {
    tiles += Tile("wall time", DurationText(*report.wall_seconds),
                  Known(report.train_seconds)
                      ? absl::StrCat(DurationText(*report.train_seconds), " of training")
                      : "");
  }
  if (Known(report.startup_seconds)) {
    tiles += Tile("start-up", DurationText(*report.startup_seconds), "until the first step");
  }
  if (Known(report.cost_dollars)) {
    tiles += Tile("cost", absl::StrCat("$", FixedText(*report.cost_dollars, 4)),
                  Known(report.cost_per_million_samples)
                      ? absl::StrCat("$", NumberText(*report.cost_per_million_samples),
                                     " per million samples")
                      : "");
  }
  return tiles;
}

}  // namespace

std::string HeaderHtml(const Report& report) {
  const std::string state = EscapeHtml(report.state);
  std::string text =
      absl::StrCat("<header>\n<div class=\"title\"><h1>", EscapeHtml(report.job),
                   "</h1><span class=\"badge ", state, "\">", state, "</span></div>\n");
  std::string sub = absl::StrCat(
      "HeteroTrainingJob, attempt ", report.attempt, ", ", report.generations,
      report.generations == 1 ? " generation" : " generations", ", seed ", report.seed);
  if (const int64_t restarts = report.script_restarts.value_or(0); restarts > 0) {
    absl::StrAppend(&sub, ", ", CountText(restarts),
                    restarts == 1 ? " restart of the scripts" : " restarts of the scripts");
  }
  absl::StrAppend(&text, "<p class=\"sub\">", sub, "</p>\n");
  if (report.stream_digest.has_value()) {
    absl::StrAppend(&text, "<p class=\"sub\">stream digest <span class=\"mono\">",
                    EscapeHtml(*report.stream_digest), "</span></p>\n");
  }
  if (!report.digest_problem.empty()) {
    absl::StrAppend(&text, "<p class=\"sub\">stream digest not proven: ",
                    EscapeHtml(report.digest_problem), "</p>\n");
  }
  if (!report.message.empty()) {
    absl::StrAppend(&text, "<p class=\"reason ", state, "\">", EscapeHtml(report.message),
                    "</p>\n");
  }
  if (report.verdict.has_value()) {
    absl::StrAppend(&text, "<p class=\"verdict\">", EscapeHtml(*report.verdict), "</p>\n");
  }
  const std::string tiles =
      absl::StrCat(SpeedTiles(report), LearningTiles(report), TimeTiles(report));
  if (!tiles.empty()) absl::StrAppend(&text, "<div class=\"tiles\">\n", tiles, "</div>\n");
  return text + "</header>\n";
}

}  // namespace hetero::insight
