#include "runtime/compare/noise.h"

#include <algorithm>
#include <cmath>

namespace hetero::compare {
namespace {

std::vector<double> IntervalRates(const std::vector<RatePoint>& time_line) {
  std::vector<double> rates;
  if (time_line.empty()) return rates;
  RatePoint from = time_line.front();
  for (const RatePoint& to : time_line) {
    const double steps = to.step - from.step;
    const double seconds = to.seconds - from.seconds;
    if (steps == 0 && seconds >= 0) continue;  // the interval goes on
    const double rate = steps / seconds;
    if (steps > 0 && seconds > 0 && std::isfinite(rate)) rates.push_back(rate);
    from = to;  // also where a process began again
  }
  return rates;
}

}  // namespace

double QuantileOf(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

Noise NoiseOf(const std::vector<RatePoint>& time_line) {
  const std::vector<double> rates = IntervalRates(time_line);
  if (rates.size() < kLeastIntervals) return {.share = kAssumedNoise, .measured = false};
  const double median = QuantileOf(rates, 0.5);
  const double share = (QuantileOf(rates, 0.75) - QuantileOf(rates, 0.25)) / 2 / median;
  if (!std::isfinite(share)) return {.share = kAssumedNoise, .measured = false};
  return {.share = std::max(share, kLeastNoise), .measured = true};
}

std::vector<Noise> NoisesOf(const std::vector<RunReport>& runs) {
  std::vector<Noise> noises;
  for (const RunReport& run : runs) noises.push_back(NoiseOf(run.time_line));
  const auto shows = [](const RunReport& run) {
    return !run.failed() && !run.config.is_null() && run.samples_per_second.value_or(0) > 0;
  };
  for (size_t i = 0; i < runs.size(); ++i) {
    double least = runs[i].samples_per_second.value_or(0);
    double greatest = least;
    size_t equals = 0;
    for (const RunReport& run : runs) {
      if (!shows(run) || !shows(runs[i]) || run.config != runs[i].config) continue;
      ++equals;
      least = std::min(least, *run.samples_per_second);
      greatest = std::max(greatest, *run.samples_per_second);
    }
    const double half = (greatest / least - 1) / 2;
    if (equals < 2 || !std::isfinite(half)) continue;
    const double within = noises[i].measured ? noises[i].share : kLeastNoise;
    noises[i] = {.share = std::max(within, half), .measured = true};
  }
  return noises;
}

bool WithinNoise(double ratio, const Noise& a, const Noise& b) {
  // Of a ratio and its inverse the same is said.
  const double apart = ratio >= 1 ? ratio - 1 : 1 / ratio - 1;
  return apart <= a.share + b.share;
}

}  // namespace hetero::compare
