#include "runtime/compare/comparison.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/compare/shown_text.h"
#include "runtime/insight/figures.h"

namespace hetero::compare {
namespace {

constexpr size_t kNoteColumns = 200;

std::string WhyUnknown(const RunReport& run) {
  if (run.digest_problem.empty()) return "its report has no stream digest";
  return ShownText(run.digest_problem, kNoteColumns);
}

std::string ConsumedText(const RunReport& run) {
  return run.samples ? insight::CountText(static_cast<int64_t>(std::min(*run.samples, 9e18)))
                     : "an unknown number of";
}

// "A and C", "A, C and D".
std::string Listed(const std::vector<std::string>& names) {
  if (names.size() < 2) return absl::StrJoin(names, "");
  const std::vector<std::string> before(names.begin(), names.end() - 1);
  return absl::StrCat(absl::StrJoin(before, ", "), " and ", names.back());
}

// Two runs that are the sides of a price/performance table.
bool AreSides(const std::vector<RunReport>& runs) {
  return runs.size() == 2 && !runs[0].failed() && !runs[1].failed() && !runs[0].config.is_null() &&
         runs[0].cpu_workers == 0 && runs[1].cpu_workers > 0;
}

}  // namespace

std::string LetterOf(size_t run) { return std::string(1, static_cast<char>('A' + run)); }

EqualInput InputOf(const std::vector<RunReport>& runs) {
  std::map<std::string, std::vector<std::string>> runs_of;  // letters, by digest
  std::vector<std::string> order;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].digest.empty()) {
      return {.equal = {},
              .sentence = absl::StrCat("Whether all were trained on the same input is not known: ",
                                       LetterOf(i), ": ", WhyUnknown(runs[i]), ".")};
    }
    std::vector<std::string>& same = runs_of[runs[i].digest];
    if (same.empty()) order.push_back(runs[i].digest);
    same.push_back(LetterOf(i));
  }
  if (order.size() == 1) {
    return {
        .equal = true,
        .sentence = absl::StrCat("Equal training input: the same samples, bit for bit, in the ",
                                 "same steps (stream digest ", ShownText(order.front(), 32), ").")};
  }
  std::vector<std::string> groups;
  for (const std::string& digest : order) groups.push_back(Listed(runs_of[digest]));
  std::string sentence = "Not the same training input: ";
  if (runs.size() == 2) {
    sentence += "the stream digests differ";
  } else {
    absl::StrAppend(&sentence, "by stream digest ", absl::StrJoin(groups, " | "));
  }
  for (const RunReport& run : runs) {
    if (run.samples == runs.front().samples) continue;
    absl::StrAppend(&sentence, " (", LetterOf(0), " consumed ", ConsumedText(runs.front()),
                    " samples, ", LetterOf(static_cast<size_t>(&run - runs.data())), " ",
                    ConsumedText(run), ")");
    break;
  }
  return {.equal = false, .sentence = sentence + "."};
}

std::vector<std::string> NotesOf(const std::vector<RunReport>& runs,
                                 const std::vector<Noise>& noises) {
  std::vector<std::string> notes;
  bool other_job = false;
  for (const RunReport& run : runs) other_job |= run.job != runs.front().job;
  if (other_job) {
    std::vector<std::string> jobs;
    for (size_t i = 0; i < runs.size(); ++i) {
      jobs.push_back(absl::StrCat(LetterOf(i), " is ", ShownText(runs[i].job, 63)));
    }
    notes.push_back(absl::StrCat("these are runs of different jobs: ", absl::StrJoin(jobs, ", ")));
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunReport& run = runs[i];
    const std::string name = absl::StrCat(LetterOf(i), " (", ShownText(run.place, 100), ")");
    const std::string why =
        run.message.empty() ? "" : absl::StrCat(": ", ShownText(run.message, kNoteColumns));
    if (run.failed()) {
      notes.push_back(absl::StrCat(name, " failed", why,
                                   "; its figures end there, and it is not "
                                   "ranked: run it again"));
    } else if (run.state != "Succeeded") {
      notes.push_back(absl::StrCat(name, " ended as ", ShownText(run.state, 20), why,
                                   "; its figures end there"));
    }
    if (!run.unpriced_roles.empty()) {
      notes.push_back(absl::StrCat("the dollars of ", LetterOf(i), " lack role ",
                                   ShownText(run.unpriced_roles.front(), 63),
                                   ", which has no pricePerHour"));
    }
    if (run.config.is_null()) {
      notes.push_back(absl::StrCat(name, " has no manifest in its report (config)"));
    }
  }
  std::vector<std::string> brief;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!noises[i].measured) brief.push_back(LetterOf(i));
  }
  if (!brief.empty()) {
    notes.push_back(absl::StrCat(Listed(brief), brief.size() == 1 ? " is" : " are",
                                 " too short to show the noise of the rate, and ",
                                 insight::PercentText(100 * kAssumedNoise),
                                 " is a guess: more steps say more"));
  }
  return notes;
}

Comparison Compare(std::vector<RunReport> runs) {
  Comparison comparison;
  std::vector<nlohmann::json> manifests;
  comparison.noises = NoisesOf(runs);
  for (const RunReport& run : runs) {
    comparison.manifests_known &= !run.config.is_null();
    manifests.push_back(run.config);
  }
  if (comparison.manifests_known) {
    comparison.differences = ManifestDifferences(WithDefaults(std::move(manifests)));
  }
  comparison.rows = RowsOf(runs, comparison.noises);
  comparison.input = InputOf(runs);
  comparison.ranking = RankingOf(runs, comparison.noises);
  comparison.notes = NotesOf(runs, comparison.noises);
  if (AreSides(runs)) comparison.prices = PriceTableOf({runs[0]}, {runs[1]});
  comparison.runs = std::move(runs);
  return comparison;
}

std::string RatioText(const Cell& cell) {
  if (!cell.ratio) return "";
  const std::string ratio = *cell.ratio >= 1000 || (*cell.ratio < 0.01 && *cell.ratio > 0)
                                ? insight::NumberText(*cell.ratio)
                                : insight::FixedText(*cell.ratio, 2);
  return absl::StrCat(cell.within_noise ? "~" : "", ratio, "x");
}

}  // namespace hetero::compare
