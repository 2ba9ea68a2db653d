#include "runtime/compare/run_report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/json_access.h"
#include "base/status_macros.h"

namespace hetero::compare {
namespace {

using base::FieldOf;
using base::ListOf;
using base::ObjectOf;
using base::TextOf;
using nlohmann::json;

// A manifest has some ten levels. Whoever walks through JSON does so recursively.
constexpr int kMaxDepth = 100;

// Numbers beyond it are no steps, losses or accuracies, and no axis fits them.
constexpr double kMostDrawn = 1e15;

int DepthOf(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '{' || c == '[') deepest = std::max(deepest, ++depth);
    if (c == '}' || c == ']') --depth;
  }
  return deepest;
}

std::optional<double> FiniteNumber(const json& value) {
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  return std::isfinite(number) ? std::optional<double>(number) : std::nullopt;
}

std::optional<double> NumberOf(const json& object, std::string_view name) {
  return FiniteNumber(FieldOf(object, name));
}

// Times, counts and sums of money are not negative.
std::optional<double> AmountOf(const json& object, std::string_view name) {
  const std::optional<double> number = NumberOf(object, name);
  return number && *number >= 0 ? number : std::nullopt;
}

std::map<std::string, double> NumbersOf(const json& object, std::string_view name) {
  std::map<std::string, double> numbers;
  for (const auto& [key, value] : ObjectOf(object, name).items()) {
    if (const std::optional<double> number = FiniteNumber(value)) numbers[key] = *number;
  }
  return numbers;
}

std::vector<CurvePoint> CurveOf(const json& list, std::string_view value_name) {
  std::vector<CurvePoint> points;
  for (const json& entry : list) {
    const std::optional<double> step = NumberOf(entry, "step");
    const std::optional<double> value = NumberOf(entry, value_name);
    if (step && value && *step >= 0 && *step < kMostDrawn && std::abs(*value) < kMostDrawn) {
      points.push_back({*step, *value});
    }
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const CurvePoint& a, const CurvePoint& b) { return a.step < b.step; });
  return points;
}

std::vector<RatePoint> TimeLineOf(const json& report) {
  for (const json& line : ListOf(report, "timeLines")) {
    std::vector<RatePoint> points;
    for (const json& entry : ListOf(line, "points")) {
      const std::optional<double> step = NumberOf(entry, "step");
      const std::optional<double> seconds = NumberOf(entry, "seconds");
      if (!step || !seconds) continue;
      const json& phases = ObjectOf(entry, "phaseSeconds");
      points.push_back({*step, *seconds - AmountOf(phases, "evaluation").value_or(0) -
                                   AmountOf(phases, "checkpoint").value_or(0)});
    }
    if (!points.empty()) return points;
  }
  return {};
}

// The median of the curve's; of a run without one the mean.
std::optional<double> StepSeconds(const json& report) {
  std::vector<double> seconds;
  for (const json& entry : ListOf(report, "lossCurve")) {
    if (const auto one = AmountOf(entry, "secondsPerStep")) seconds.push_back(*one);
  }
  if (!seconds.empty()) {
    const auto middle = seconds.begin() + static_cast<int64_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    return *middle;
  }
  const std::optional<double> all = AmountOf(report, "trainSeconds");
  const std::optional<double> steps = AmountOf(report, "steps");
  if (!all || !steps || *steps < 1) return std::nullopt;
  return *all / *steps;
}

void AddRoles(RunReport& run) {
  for (const json& role : ListOf(ObjectOf(run.config, "spec"), "roles")) {
    const double replicas = AmountOf(role, "replicas").value_or(1);
    const std::string type = TextOf(role, "type");
    if (type == "CPUWorker" && replicas < 1e9) run.cpu_workers += static_cast<int64_t>(replicas);
    double price = 0;
    if (absl::SimpleAtod(TextOf(role, "pricePerHour"), &price) && std::isfinite(price) &&
        price >= 0) {
      run.dollars_per_hour = run.dollars_per_hour.value_or(0) + price * replicas;
    } else if (type != "Head") {
      run.unpriced_roles.push_back(TextOf(role, "name"));
    }
  }
  if (run.dollars_per_hour && !std::isfinite(*run.dollars_per_hour)) run.dollars_per_hour.reset();
  if (!run.dollars_per_hour) run.unpriced_roles.clear();
}

absl::Status NoReport(const std::string& place, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(place, " ", std::string(why), kWhatToGive));
}

absl::StatusOr<json> ParseJson(std::string_view text, const std::string& place) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return NoReport(place, "is empty");
  }
  if (DepthOf(text) > kMaxDepth) {
    return NoReport(place, absl::StrCat("is no report: it is nested deeper than ", kMaxDepth));
  }
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    if (error.byte <= text.size()) {
      return NoReport(place, absl::StrCat("is no report: no JSON at byte ", error.byte));
    }
  } catch (const json::exception& error) {
    return NoReport(place, absl::StrCat("is no report: ", error.what()));
  }
  return absl::InvalidArgumentError(absl::StrCat(place, " is cut off after ", text.size(),
                                                 " bytes; copy it again from where the job wrote "
                                                 "it"));
}

}  // namespace

std::optional<double> RunReport::TrainingDollarsPerMillion() const {
  constexpr double kSecondsPerHour = 3600;
  if (!dollars_per_hour || !samples_per_second || *samples_per_second <= 0) return std::nullopt;
  const double dollars = *dollars_per_hour / kSecondsPerHour / *samples_per_second * 1e6;
  return std::isfinite(dollars) ? std::optional<double>(dollars) : std::nullopt;
}

absl::StatusOr<RunReport> ParseReport(std::string_view text, const std::string& place) {
  HETERO_ASSIGN_OR_RETURN(const json report, ParseJson(text, place));
  RunReport run;
  run.place = place;
  run.job = TextOf(report, "job");
  run.state = TextOf(report, "state");
  if (run.job.empty() || run.state.empty()) {
    return NoReport(place, "is no report of a job: it has no fields job and state");
  }
  run.message = TextOf(report, "message");
  run.steps = AmountOf(report, "steps");
  run.samples = AmountOf(report, "samplesConsumed");
  run.samples_per_second = AmountOf(report, "samplesPerSecond");
  run.wait_percent = AmountOf(report, "dataWaitPercent");
  run.startup_seconds = AmountOf(report, "startupSeconds");
  run.train_seconds = AmountOf(report, "trainSeconds");
  run.wall_seconds = AmountOf(report, "wallSeconds");
  run.step_seconds = StepSeconds(report);
  run.loss = NumberOf(report, "loss");
  run.accuracy = NumberOf(report, "accuracy");
  run.dollars = AmountOf(report, "costDollars");
  run.dollars_per_million = AmountOf(report, "costPerMillionSamples");
  run.phase_seconds = NumbersOf(report, "phaseSeconds");
  run.cpu_seconds = NumbersOf(report, "cpuSecondsPerSample");
  run.reported = NumbersOf(report, "reported");
  for (const auto& [name, version] : ObjectOf(report, "versions").items()) {
    if (version.is_string()) run.versions[name] = version.get<std::string>();
  }
  run.time_line = TimeLineOf(report);
  run.losses = CurveOf(ListOf(report, "lossCurve"), "loss");
  run.accuracies = CurveOf(ListOf(report, "evaluations"), "accuracy");
  run.faults = ListOf(report, "faults").size();
  run.digest = TextOf(report, "streamDigest");
  run.digest_problem = TextOf(report, "digestProblem");
  const json& config = ObjectOf(report, "config");
  if (!config.empty()) run.config = config;
  AddRoles(run);
  return run;
}

}  // namespace hetero::compare
