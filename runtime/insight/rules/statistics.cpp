#include "runtime/insight/rules/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace hetero::insight {
namespace {

constexpr size_t kPlaces = 5;
using Histogram = std::array<double, kPlaces>;

Histogram SoftHistogram(const std::vector<double>& shares) {
  Histogram histogram{};
  for (const double share : shares) {
    const double place = std::clamp(share, 0.0, 1.0) * (kPlaces - 1);
    const auto below = std::min(static_cast<size_t>(place), kPlaces - 2);
    const double above = place - static_cast<double>(below);
    histogram[below] += (1 - above) / static_cast<double>(shares.size());
    histogram[below + 1] += above / static_cast<double>(shares.size());
  }
  return histogram;
}

double MeanOfPart(const std::vector<std::pair<double, double>>& series, size_t part, size_t parts) {
  const size_t begin = series.size() * part / parts;
  const size_t end = series.size() * (part + 1) / parts;
  double sum = 0;
  for (size_t i = begin; i < end; ++i) sum += series[i].second;
  return sum / static_cast<double>(end - begin);
}

}  // namespace

double Mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Percentile(std::vector<double> values, double percent) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double place =
      std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - static_cast<double>(below));
}

double Median(std::vector<double> values) { return Percentile(std::move(values), 50); }

double SteadyGrowth(const std::vector<std::pair<double, double>>& series) {
  constexpr size_t kFewestPoints = 12;
  if (series.size() < kFewestPoints) return 0;
  const double first = MeanOfPart(series, 0, 3);
  const double middle = MeanOfPart(series, 1, 3);
  const double last = MeanOfPart(series, 2, 3);
  if (middle <= first || last <= middle || last - middle < (middle - first) / 2) return 0;
  return MeanOfPart(series, 5, 6) - MeanOfPart(series, 0, 6);
}

double HistogramDistance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty() || b.empty()) return 0;
  const Histogram of_a = SoftHistogram(a);
  const Histogram of_b = SoftHistogram(b);
  double sum = 0;
  for (size_t i = 0; i < kPlaces; ++i) sum += std::abs(of_a[i] - of_b[i]);
  return sum / 2;
}

}  // namespace hetero::insight
