#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/compare/comparison.h"
#include "runtime/compare/shown_text.h"
#include "runtime/insight/figures.h"

// The table of figures.
namespace hetero::compare {
namespace {

using Figure = std::function<std::optional<double>(const RunReport&)>;
using Text = std::string (*)(double);

constexpr size_t kMostPhases = 3;    // those that differ most
constexpr size_t kMostReported = 8;  // numbers of a script
constexpr size_t kMostRoles = 8;
constexpr size_t kNameColumns = 40;

constexpr std::array<std::pair<const char*, const char*>, 9> kPhases = {
    {{"wait", "data wait"},
     {"hostToDevice", "host to device"},
     {"forward", "forward"},
     {"backward", "backward"},
     {"allReduce", "all-reduce"},
     {"optimizer", "optimizer"},
     {"checkpoint", "checkpoint"},
     {"evaluation", "evaluation"},
     {"other", "other"}}};

std::string CountOf(double value) {
  if (std::abs(value) > 9e18) return insight::NumberText(value);
  return insight::CountText(std::llround(value));
}

std::string SharePercent(double share) { return insight::PercentText(share * 100); }

enum class Ratio { kNone, kShown, kJudged };  // judged: whether it is within the noise

class Table {
 public:
  Table(const std::vector<RunReport>& runs, const std::vector<Noise>& noises)
      : runs_(runs), noises_(noises) {}

  // A row, unless no run has the figure.
  void Add(std::string name, const Figure& figure, Text text, Ratio ratio = Ratio::kNone) {
    std::vector<std::optional<double>> values;
    for (const RunReport& run : runs_) values.push_back(figure(run));
    if (std::none_of(values.begin(), values.end(), insight::Known)) return;
    Row row{.name = std::move(name), .cells = {}};
    for (size_t i = 0; i < values.size(); ++i) {
      Cell& cell = row.cells.emplace_back();
      if (!insight::Known(values[i])) continue;
      cell.text = text(*values[i]);
      if (ratio == Ratio::kNone || i == 0) continue;
      cell.ratio = RatioOf(values[i], values.front());
      cell.within_noise = ratio == Ratio::kJudged && cell.ratio && *cell.ratio > 0 &&
                          WithinNoise(*cell.ratio, noises_.front(), noises_[i]);
    }
    rows_.push_back(std::move(row));
  }

  void AddNoise() {
    Row row{.name = "noise of samples/s", .cells = {}};
    for (const Noise& noise : noises_) {
      row.cells.push_back({.text = absl::StrCat(insight::PercentText(100 * noise.share),
                                                noise.measured ? "" : " assumed"),
                           .ratio = {},
                           .within_noise = false});
    }
    rows_.push_back(std::move(row));
  }

  std::vector<Row> Take() { return std::move(rows_); }

 private:
  const std::vector<RunReport>& runs_;
  const std::vector<Noise>& noises_;
  std::vector<Row> rows_;
};

template <typename Map>
std::optional<double> Find(const Map& map, const std::string& name) {
  const auto found = map.find(name);
  return found == map.end() ? std::nullopt : std::optional<double>(found->second);
}

// Of one sample, so that other batches, steps or lengths of a run can be compared.
std::optional<double> PhasePerSample(const RunReport& run, const std::string& phase) {
  const std::optional<double> seconds = Find(run.phase_seconds, phase);
  if (!seconds || !run.samples || *run.samples < 1) return std::nullopt;
  return *seconds / *run.samples;
}

// Those in which runs are furthest apart, in the report's order.
std::vector<std::string> PhasesThatDifferMost(const std::vector<RunReport>& runs) {
  std::vector<std::pair<double, std::string>> apart;
  for (const auto& [phase, name] : kPhases) {
    std::vector<double> values;
    for (const RunReport& run : runs) {
      if (const auto value = PhasePerSample(run, phase)) values.push_back(*value);
    }
    if (values.size() < 2) continue;
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    if (*most > *least) apart.emplace_back(*most - *least, phase);
  }
  std::stable_sort(apart.begin(), apart.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (apart.size() > kMostPhases) apart.resize(kMostPhases);
  std::vector<std::string> phases;
  for (const auto& [phase, name] : kPhases) {
    const auto same = [key = phase](const auto& one) { return one.second == key; };
    if (std::any_of(apart.begin(), apart.end(), same)) phases.emplace_back(phase);
  }
  return phases;
}

std::set<std::string> NamesOf(const std::vector<RunReport>& runs,
                              std::map<std::string, double> RunReport::*map, size_t most) {
  std::set<std::string> names;
  for (const RunReport& run : runs) {
    for (const auto& [name, value] : run.*map) {
      if (names.size() < most) names.insert(name);
    }
  }
  return names;
}

void AddLearning(const std::vector<RunReport>& runs, Table& table) {
  table.Add(
      "loss", [](const RunReport& run) { return run.loss; }, insight::NumberText);
  table.Add(
      "accuracy", [](const RunReport& run) { return run.accuracy; }, SharePercent);
  for (const std::string& name : NamesOf(runs, &RunReport::reported, kMostReported)) {
    table.Add(
        absl::StrCat("reported ", ShownText(name, kNameColumns)),
        [&](const RunReport& run) { return Find(run.reported, name); }, insight::NumberText);
  }
}

void AddDollars(Table& table) {
  table.Add(
      "$ per hour", [](const RunReport& run) { return run.dollars_per_hour; }, DollarsText,
      Ratio::kShown);
  table.Add(
      "$, whole run", [](const RunReport& run) { return run.dollars; }, DollarsText, Ratio::kShown);
  table.Add(
      "$ per 1M samples, whole run", [](const RunReport& run) { return run.dollars_per_million; },
      DollarsText, Ratio::kShown);
  table.Add(
      "$ per 1M samples, training",
      [](const RunReport& run) { return run.TrainingDollarsPerMillion(); }, DollarsText,
      Ratio::kJudged);
  table.Add(
      "samples per $, training",
      [](const RunReport& run) -> std::optional<double> {
        const std::optional<double> dollars = run.TrainingDollarsPerMillion();
        return dollars && *dollars > 0 ? std::optional<double>(1e6 / *dollars) : std::nullopt;
      },
      insight::NumberText, Ratio::kJudged);
}

}  // namespace

std::string PhaseName(const std::string& phase) {
  for (const auto& [key, name] : kPhases) {
    if (phase == key) return name;
  }
  return phase;
}

std::vector<Row> RowsOf(const std::vector<RunReport>& runs, const std::vector<Noise>& noises) {
  Table table(runs, noises);
  table.Add(
      "samples/s", [](const RunReport& run) { return run.samples_per_second; }, insight::NumberText,
      Ratio::kJudged);
  table.AddNoise();
  table.Add(
      "waiting for data", [](const RunReport& run) { return run.wait_percent; },
      insight::PercentText);
  table.Add(
      "step, median", [](const RunReport& run) { return run.step_seconds; }, insight::DurationText,
      Ratio::kShown);
  for (const std::string& phase : PhasesThatDifferMost(runs)) {
    table.Add(
        absl::StrCat(PhaseName(phase), ", per sample"),
        [&](const RunReport& run) { return PhasePerSample(run, phase); }, insight::DurationText);
  }
  for (const std::string& role : NamesOf(runs, &RunReport::cpu_seconds, kMostRoles)) {
    table.Add(
        absl::StrCat("CPU time of ", ShownText(role, kNameColumns), ", per sample"),
        [&](const RunReport& run) { return Find(run.cpu_seconds, role); }, insight::DurationText,
        Ratio::kShown);
  }
  table.Add(
      "start-up", [](const RunReport& run) { return run.startup_seconds; }, insight::DurationText);
  table.Add(
      "training", [](const RunReport& run) { return run.train_seconds; }, insight::DurationText);
  table.Add(
      "wall time", [](const RunReport& run) { return run.wall_seconds; }, insight::DurationText);
  table.Add(
      "steps", [](const RunReport& run) { return run.steps; }, CountOf);
  table.Add(
      "samples", [](const RunReport& run) { return run.samples; }, CountOf);
  if (std::any_of(runs.begin(), runs.end(), [](const RunReport& run) { return run.faults > 0; })) {
    table.Add(
        "faults", [](const RunReport& run) { return static_cast<double>(run.faults); }, CountOf);
  }
  AddLearning(runs, table);
  AddDollars(table);
  return table.Take();
}

}  // namespace hetero::compare
