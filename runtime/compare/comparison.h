#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/compare/manifest_difference.h"
#include "runtime/compare/noise.h"
#include "runtime/compare/price_table.h"
#include "runtime/compare/run_report.h"

// What `hetero-runtime compare` says of runs (docs/compare.md). Pure values and functions.
namespace hetero::compare {

inline constexpr size_t kMostRuns = 20;

// One figure of one run.
struct Cell {
  std::string text = "-";
  std::optional<double> ratio;  // to the first run's
  bool within_noise = false;    // of the ratio
};

struct Row {
  std::string name;
  std::vector<Cell> cells;  // of each run
};

// Whether all runs were trained on the same input.
struct EqualInput {
  std::optional<bool> equal;  // absent: not known
  std::string sentence;
};

// Which run is best, among those that did not fail.
struct Ranking {
  std::optional<size_t> fastest, cheapest;  // per sample, while training; the first of equals
  std::string sentence;
};

struct Comparison {
  std::vector<RunReport> runs;
  std::vector<Noise> noises;            // of the runs' rates
  std::vector<Difference> differences;  // of the manifests
  bool manifests_known = true;          // every report has its manifest
  std::vector<Row> rows;
  EqualInput input;
  Ranking ranking;
  std::vector<std::string> notes;  // what a reader has to know of the runs: one sentence each
  std::optional<PriceTable> prices;
};

// Compares two to kMostRuns runs with the first of them. Two of which only the second has CPU
// workers get a table of prices.
Comparison Compare(std::vector<RunReport> runs);

// "A" for the first run.
std::string LetterOf(size_t run);

// The parts of a comparison.
std::vector<Row> RowsOf(const std::vector<RunReport>& runs, const std::vector<Noise>& noises);
EqualInput InputOf(const std::vector<RunReport>& runs);
Ranking RankingOf(const std::vector<RunReport>& runs, const std::vector<Noise>& noises);
std::vector<std::string> NotesOf(const std::vector<RunReport>& runs,
                                 const std::vector<Noise>& noises);

// Names of docs/report.md's phases for a person, in their order; every other name is its own.
std::string PhaseName(const std::string& phase);

// For a terminal, for a program (docs/compare.md), and as a page that needs nothing beside it.
std::string ToText(const Comparison& comparison);
std::string ToJson(const Comparison& comparison);
std::string ToHtml(const Comparison& comparison);

// "1.94x"; "~1.02x" within the noise.
std::string RatioText(const Cell& cell);

}  // namespace hetero::compare
