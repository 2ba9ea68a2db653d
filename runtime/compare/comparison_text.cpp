#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/compare/comparison.h"
#include "runtime/compare/shown_text.h"

namespace hetero::compare {
namespace {

constexpr size_t kMostDifferences = 60;
constexpr size_t kValueColumns = 60;
constexpr size_t kPathColumns = 80;

using Lines = std::vector<std::vector<std::string>>;

// Columns side by side; all but the first to the right where they are numbers.
std::string Aligned(const Lines& lines, bool numbers) {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& line : lines) {
    if (line.size() > widths.size()) widths.resize(line.size());
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], ColumnsOf(line[i]));
  }
  std::string text;
  for (const std::vector<std::string>& line : lines) {
    std::string row = "  ";
    for (size_t i = 0; i < line.size(); ++i) {
      if (i > 0) row += "  ";
      row += numbers && i > 0 ? PaddedLeft(line[i], widths[i]) : PaddedRight(line[i], widths[i]);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, row, "\n");
  }
  return text;
}

std::string RunsText(const Comparison& comparison) {
  Lines lines;
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    const RunReport& run = comparison.runs[i];
    lines.push_back(
        {LetterOf(i), ShownText(run.place, 100), ShownText(run.job, 63), ShownText(run.state, 20)});
  }
  return absl::StrCat("runs\n", Aligned(lines, false));
}

std::string DifferencesText(const Comparison& comparison) {
  if (!comparison.manifests_known) return "";
  std::string text = "\nmanifests\n";
  if (comparison.differences.empty()) return text + "  no difference\n";
  const bool two = comparison.runs.size() == 2;
  Lines lines;
  if (!two) {
    std::vector<std::string>& head = lines.emplace_back(1);
    for (size_t i = 0; i < comparison.runs.size(); ++i) head.push_back(LetterOf(i));
  }
  for (size_t i = 0; i < std::min(comparison.differences.size(), kMostDifferences); ++i) {
    const Difference& difference = comparison.differences[i];
    std::vector<std::string> values;
    for (const auto& value : difference.values) {
      values.push_back(ShownText(ValueText(value), two ? kValueColumns : kValueColumns / 3));
    }
    std::vector<std::string> line = {ShownText(difference.path, kPathColumns)};
    if (two) {
      line.push_back(absl::StrJoin(values, " -> "));
    } else {
      line.insert(line.end(), values.begin(), values.end());
    }
    lines.push_back(std::move(line));
  }
  text += Aligned(lines, false);
  if (comparison.differences.size() > kMostDifferences) {
    absl::StrAppend(&text, "  ... and ", comparison.differences.size() - kMostDifferences,
                    " more: -o json has all\n");
  }
  return text;
}

std::string RowsText(const Comparison& comparison) {
  Lines lines;
  std::vector<std::string>& head = lines.emplace_back(1);
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    head.push_back(LetterOf(i));
    if (i > 0) head.emplace_back();
  }
  for (const Row& row : comparison.rows) {
    std::vector<std::string> line = {row.name};
    for (size_t i = 0; i < row.cells.size(); ++i) {
      line.push_back(row.cells[i].text);
      if (i > 0) line.push_back(RatioText(row.cells[i]));
    }
    lines.push_back(std::move(line));
  }
  return absl::StrCat("\nfigures\n", Aligned(lines, true));
}

}  // namespace

std::string ToText(const Comparison& comparison) {
  std::string text =
      absl::StrCat(RunsText(comparison), DifferencesText(comparison), RowsText(comparison), "\n");
  if (comparison.prices) absl::StrAppend(&text, ToText(*comparison.prices), "\n");
  absl::StrAppend(&text, "input    ", comparison.input.sentence, "\n");
  for (const std::string& note : comparison.notes) absl::StrAppend(&text, "note     ", note, "\n");
  absl::StrAppend(&text, "verdict  ", comparison.ranking.sentence, "\n");
  return text;
}

}  // namespace hetero::compare
