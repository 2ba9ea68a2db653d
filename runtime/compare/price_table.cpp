#include "runtime/compare/price_table.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/compare/noise.h"
#include "runtime/compare/shown_text.h"
#include "runtime/insight/figures.h"

namespace hetero::compare {
namespace {

template <typename Figure>
std::optional<double> MedianOf(const std::vector<RunReport>& runs, const Figure& figure) {
  std::vector<double> values;
  for (const RunReport& run : runs) {
    if (const std::optional<double> value = figure(run)) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  return QuantileOf(std::move(values), 0.5);
}

PriceSide SideOf(const std::vector<RunReport>& runs) {
  PriceSide side;
  side.samples_per_second = MedianOf(runs, [](const auto& run) { return run.samples_per_second; });
  side.dollars_per_hour = MedianOf(runs, [](const auto& run) { return run.dollars_per_hour; });
  side.dollars_per_million =
      MedianOf(runs, [](const auto& run) { return run.TrainingDollarsPerMillion(); });
  return side;
}

std::string SideCell(const std::optional<double>& value, const std::optional<double>& first,
                     std::string (*text)(double), bool with_ratio) {
  if (!value) return "-";
  const std::optional<double> ratio = with_ratio ? RatioOf(value, first) : std::nullopt;
  if (!ratio) return text(*value);
  return absl::StrCat(text(*value), " (", insight::FixedText(*ratio, 2), "x)");
}

}  // namespace

std::optional<double> RatioOf(const std::optional<double>& value,
                              const std::optional<double>& first) {
  if (!value || !first || !(*first > 0)) return std::nullopt;
  const double ratio = *value / *first;
  return std::isfinite(ratio) ? std::optional<double>(ratio) : std::nullopt;
}

std::optional<double> PriceSide::samples_per_dollar() const {
  return RatioOf(1e6, dollars_per_million);
}

std::string DollarsText(double dollars) {
  if (!std::isfinite(dollars)) return "-";
  const double magnitude = std::abs(dollars);
  if (magnitude >= 1e4 || (magnitude < 0.1 && magnitude > 0)) return insight::NumberText(dollars);
  return insight::FixedText(dollars, 3);
}

PriceTable PriceTableOf(const std::vector<RunReport>& alone,
                        const std::vector<RunReport>& together) {
  PriceTable table{.alone = SideOf(alone),
                   .together = SideOf(together),
                   .least_ratio = {},
                   .greatest_ratio = {},
                   .notes = {}};
  for (size_t i = 0; alone.size() > 1 && i < std::min(alone.size(), together.size()); ++i) {
    const double without = alone[i].samples_per_second.value_or(0);
    const double with = together[i].samples_per_second.value_or(0);
    if (without <= 0) continue;
    const double ratio = with / without;
    table.least_ratio = std::min(table.least_ratio.value_or(ratio), ratio);
    table.greatest_ratio = std::max(table.greatest_ratio.value_or(ratio), ratio);
  }
  for (const std::vector<RunReport>* side : {&alone, &together}) {
    const bool is_alone = side == &alone;
    for (const RunReport& run : *side) {
      if ((run.cpu_workers > 0) != is_alone) continue;
      table.notes.push_back(is_alone
                                ? absl::StrCat(ShownText(run.place, 60), " has ", run.cpu_workers,
                                               " CPU workers: it is no run of the trainers alone")
                                : absl::StrCat(ShownText(run.place, 60), " has no CPU workers"));
    }
  }
  if (!table.together.dollars_per_hour) {
    table.notes.emplace_back(
        "no dollars: no role has a pricePerHour; give it in the manifest or by --set "
        "roles.NAME.pricePerHour=1.408");
  } else if (!together.front().unpriced_roles.empty()) {
    table.notes.push_back(absl::StrCat("not in the dollars: role ",
                                       ShownText(together.front().unpriced_roles.front(), 60),
                                       " has no pricePerHour"));
  }
  return table;
}

std::string PairsVerdict(const PriceTable& table) {
  const auto rate = RatioOf(table.together.samples_per_second, table.alone.samples_per_second);
  if (!table.least_ratio || !table.greatest_ratio || !rate) return "";
  const auto times = [](double ratio) { return absl::StrCat(insight::FixedText(ratio, 2), "x"); };
  const bool both_sides = *table.least_ratio <= 1 && *table.greatest_ratio >= 1;
  std::string text =
      both_sides ? "Equally fast with and without CPU workers"
                 : absl::StrCat("With CPU workers ", times(*rate), " the samples per second");
  absl::StrAppend(&text, ": ", times(*table.least_ratio), " to ", times(*table.greatest_ratio),
                  " pair by pair");
  const auto dollars = RatioOf(table.together.dollars_per_million, table.alone.dollars_per_million);
  if (dollars) absl::StrAppend(&text, "; a sample costs ", times(*dollars), " as much with them");
  return text + ".";
}

std::string ToText(const PriceTable& table) {
  const auto row = [](const std::string& name, const PriceSide& side, const PriceSide& first,
                      bool ratios) {
    const auto per_dollar = side.samples_per_dollar();
    return std::vector<std::string>{
        name,
        SideCell(side.samples_per_second, first.samples_per_second, insight::NumberText, ratios),
        SideCell(side.dollars_per_hour, first.dollars_per_hour, DollarsText, ratios),
        SideCell(side.dollars_per_million, first.dollars_per_million, DollarsText, ratios),
        SideCell(per_dollar, first.samples_per_dollar(), insight::NumberText, ratios)};
  };
  const std::vector<std::vector<std::string>> lines = {
      {"", "samples/s", "$ per hour", "$ per 1M samples", "samples per $"},
      row("trainers alone", table.alone, table.alone, false),
      row("with CPU workers", table.together, table.alone, true)};
  std::vector<size_t> widths(lines.front().size());
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], ColumnsOf(line[i]));
  }
  std::string text = "price and performance, while training\n";
  for (const auto& line : lines) {
    absl::StrAppend(&text, "  ", PaddedRight(line.front(), widths.front()));
    for (size_t i = 1; i < line.size(); ++i) {
      absl::StrAppend(&text, "  ", PaddedLeft(line[i], widths[i]));
    }
    text += "\n";
  }
  if (table.least_ratio) {
    absl::StrAppend(&text, "  samples/s, pair by pair: ", insight::FixedText(*table.least_ratio, 2),
                    "x to ", insight::FixedText(*table.greatest_ratio, 2), "x\n");
  }
  for (const std::string& note : table.notes) absl::StrAppend(&text, "  note: ", note, "\n");
  return text;
}

}  // namespace hetero::compare
