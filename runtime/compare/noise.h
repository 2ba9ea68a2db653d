#pragma once

#include <optional>
#include <vector>

#include "runtime/compare/run_report.h"

namespace hetero::compare {

// How far a run's rate is uncertain, as a share of it.
struct Noise {
  double share = 0;
  bool measured = false;  // from the run's time line; else assumed
};

inline constexpr double kLeastNoise = 0.01;
inline constexpr double kAssumedNoise = 0.1;  // of a run that is too short to show its own
inline constexpr size_t kLeastIntervals = 4;

// Half the distance between the quartiles of the rates of a time line's intervals over their
// median, at least kLeastNoise. An interval lies between neighbouring points and has at least one
// step; what came before the first point is left out, because it holds the start. Pure.
Noise NoiseOf(const std::vector<RatePoint>& time_line);

// The noises of runs, each by its time line; runs of equal manifests show besides how far equal
// runs are apart, and each of them has at least half of that. Runs that failed show nothing. Pure.
std::vector<Noise> NoisesOf(const std::vector<RunReport>& runs);

// Whether `ratio` of two runs' rates is no clearer than both runs' noise together.
bool WithinNoise(double ratio, const Noise& a, const Noise& b);

// The value below which `share` of the values lie, between neighbours in proportion. Not empty.
double QuantileOf(std::vector<double> values, double share);

}  // namespace hetero::compare
