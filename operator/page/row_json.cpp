#include "operator/page/row_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace hetero::jobs_page {
namespace {

using nlohmann::json;

constexpr int kDigits = 3;
constexpr double kMostExact = 1e15;  // whole numbers below it are exact

json WholeIfWhole(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < kMostExact;
  return whole ? json(static_cast<int64_t>(value)) : json(value);
}

// kDigits significant ones; null for what is not known or no number.
json Rounded(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  if (*value == 0) return 0;
  const double scale = std::pow(10.0, kDigits - 1 - std::floor(std::log10(std::abs(*value))));
  return WholeIfWhole(std::round(*value * scale) / scale);
}

// To a hundredth of a cent: the page adds them up.
json Dollars(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return WholeIfWhole(std::round(*value * 1e4) / 1e4);
}

std::string Line(std::string_view text) {
  std::string line(text.substr(0, kMostOfText));
  std::replace_if(
      line.begin(), line.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
  return base::ToUtf8(line, kMostOfText);
}

json Facts(const JobRow& row) {
  return {row.created,           static_cast<int>(row.attention),
          Line(row.state),       Line(row.queue),
          Line(row.queue_state), Line(row.registered),
          row.attempt,           row.restarts,
          Line(row.head_pod)};
}

json Figures(const JobRow& row) {
  return {row.step,
          row.total_steps,
          Rounded(row.samples_per_second),
          Rounded(row.wait_percent),
          row.eta_seconds ? json(*row.eta_seconds) : json(nullptr),
          Rounded(row.loss),
          Dollars(row.dollars),
          Dollars(row.waiting_dollars)};
}

json FindingOf(const JobRow& row) {
  const api::JobFinding& finding = *row.finding;
  return {Line(finding.rule),       Line(finding.message),  Line(finding.remedy),
          Line(finding.field),      Line(finding.member),   Rounded(finding.seconds),
          Dollars(finding.dollars), finding.active ? 1 : 0, row.findings};
}

std::string TextOf(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string Quoted(std::string_view text) { return TextOf(base::ToUtf8(text)); }

RowParts PartsOf(const JobRow& row) {
  return {TextOf(Facts(row)), TextOf(Figures(row)), row.note.empty() ? "" : Quoted(Line(row.note)),
          row.finding ? TextOf(FindingOf(row)) : ""};
}

}  // namespace hetero::jobs_page
