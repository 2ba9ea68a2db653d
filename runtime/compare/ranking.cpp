#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/compare/comparison.h"
#include "runtime/insight/figures.h"

// The sentence on which run is best.
namespace hetero::compare {
namespace {

struct Entry {
  size_t run = 0;
  double goodness = 0;  // more is better: samples per second, samples per dollar
};

std::string Times(double ratio) { return absl::StrCat(insight::FixedText(ratio, 2), "x"); }

// Best first; what a failed run reached is no result.
std::vector<Entry> Ranked(const std::vector<RunReport>& runs,
                          std::optional<double> (*goodness)(const RunReport&)) {
  std::vector<Entry> entries;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::optional<double> value = goodness(runs[i]);
    if (!runs[i].failed() && insight::Known(value) && *value > 0) entries.push_back({i, *value});
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.goodness > b.goodness; });
  return entries;
}

// How many of them, from the first, are not to be told from it.
size_t Equals(const std::vector<Entry>& entries, const std::vector<Noise>& noises) {
  size_t equals = 1;
  while (equals < entries.size() &&
         WithinNoise(entries[0].goodness / entries[equals].goodness, noises[entries[0].run],
                     noises[entries[equals].run])) {
    ++equals;
  }
  return equals;
}

std::string Letters(const std::vector<Entry>& entries, size_t count) {
  std::vector<std::string> letters;
  for (size_t i = 0; i < count; ++i) letters.push_back(LetterOf(entries[i].run));
  std::sort(letters.begin(), letters.end());
  if (count < 2) return absl::StrJoin(letters, "");
  const std::string last = letters.back();
  letters.pop_back();
  return absl::StrCat(absl::StrJoin(letters, ", "), " and ", last);
}

// Of two runs that are as good, the one that was named first.
size_t FirstNamed(const std::vector<Entry>& entries, size_t count) {
  size_t first = entries[0].run;
  for (size_t i = 0; i < count; ++i) first = std::min(first, entries[i].run);
  return first;
}

std::string NoiseText(const std::vector<Entry>& entries, size_t count,
                      const std::vector<Noise>& noises) {
  double sum = 0;
  bool measured = true;
  for (size_t i = 1; i < count; ++i) {
    sum = std::max(sum, noises[entries[0].run].share + noises[entries[i].run].share);
    measured &= noises[entries[0].run].measured && noises[entries[i].run].measured;
  }
  return absl::StrCat(insight::PercentText(100 * sum), measured ? "" : ", assumed for short runs");
}

// With whom the best is compared: the first run, or, where that is among the best, the next one.
const Entry& Other(const std::vector<Entry>& entries, size_t equals) {
  for (size_t i = equals; i < entries.size(); ++i) {
    if (entries[i].run == 0) return entries[i];
  }
  return entries[equals];
}

struct Words {
  const char* best;       // "the fastest"
  const char* no_choice;  // "equally fast"
};

// The first part of the sentence: "B is the fastest", "A and C are the fastest, ...".
std::string Claim(const std::vector<Entry>& entries, size_t equals,
                  const std::vector<Noise>& noises, const Words& words) {
  const std::string best = Letters(entries, equals);
  if (equals == entries.size()) {
    return absl::StrCat(best, " are ", words.no_choice, ": ",
                        Times(entries[0].goodness / entries[equals - 1].goodness),
                        " apart at most, which is within their noise (",
                        NoiseText(entries, equals, noises), ")");
  }
  if (equals == 1) return absl::StrCat(best, " is ", words.best);
  return absl::StrCat(best, " are ", words.best, " and not to be told apart (noise ",
                      NoiseText(entries, equals, noises), ")");
}

std::string SpeedSentence(const std::vector<Entry>& entries, size_t equals,
                          const std::vector<Noise>& noises) {
  if (entries.empty()) return "No run that did not fail has a rate";
  if (entries.size() == 1) {
    return absl::StrCat("Only ", LetterOf(entries[0].run), " has a rate to be ranked");
  }
  std::string text = Claim(entries, equals, noises, {"the fastest", "equally fast"});
  if (equals == entries.size()) return text;
  const Entry& other = Other(entries, equals);
  return absl::StrCat(text, ": ", Times(entries[0].goodness / other.goodness),
                      " the samples per second of ", LetterOf(other.run));
}

std::string DollarsSentence(const std::vector<Entry>& entries, size_t equals,
                            const std::vector<Noise>& noises) {
  if (entries.size() < 2) return "";
  std::string text =
      Claim(entries, equals, noises, {"the cheapest per sample", "equally cheap per sample"});
  if (equals == entries.size()) return text;
  const Entry& other = Other(entries, equals);
  return absl::StrCat(text, ": ", Times(other.goodness / entries[0].goodness), " what ",
                      LetterOf(other.run), " costs");
}

}  // namespace

Ranking RankingOf(const std::vector<RunReport>& runs, const std::vector<Noise>& noises) {
  const std::vector<Entry> fast =
      Ranked(runs, [](const RunReport& run) { return run.samples_per_second; });
  const std::vector<Entry> cheap = Ranked(runs, [](const RunReport& run) -> std::optional<double> {
    const std::optional<double> dollars = run.TrainingDollarsPerMillion();
    return dollars && *dollars > 0 ? std::optional<double>(1e6 / *dollars) : std::nullopt;
  });
  const size_t fast_equals = fast.empty() ? 0 : Equals(fast, noises);
  const size_t cheap_equals = cheap.empty() ? 0 : Equals(cheap, noises);
  Ranking ranking;
  if (fast.size() > 1 && fast_equals < fast.size()) ranking.fastest = FirstNamed(fast, fast_equals);
  if (cheap.size() > 1 && cheap_equals < cheap.size()) {
    ranking.cheapest = FirstNamed(cheap, cheap_equals);
  }
  ranking.sentence = SpeedSentence(fast, fast_equals, noises);
  const std::string dollars = DollarsSentence(cheap, cheap_equals, noises);
  if (!dollars.empty()) absl::StrAppend(&ranking.sentence, "; ", dollars);
  ranking.sentence += ".";
  return ranking;
}

}  // namespace hetero::compare
