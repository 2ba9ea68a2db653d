#pragma once

#include <utility>
#include <vector>

// What rules ask of lists of numbers. Pure functions.
namespace hetero::insight {

// 0 of nothing.
double Mean(const std::vector<double>& values);

// The `percent`-th percentile, 0 to 100, between neighbours in proportion; 0 of nothing.
double Percentile(std::vector<double> values, double percent);

double Median(std::vector<double> values);

// By how much a series (time, value) has grown, of the means of its first and its last sixth, when
// it has grown all along: from third to third, and by the last one not less than half as much as by
// the one before. 0 when it has not, or has fewer than 12 points.
double SteadyGrowth(const std::vector<std::pair<double, double>>& series);

// How different two lists of shares (0 to 1) are spread: half the sum of the differences of their
// histograms, 0 to 1. The histograms have five places, 0, 0.25 to 1, and a share counts for the two
// beside it in proportion, so that what is nearly alike is nearly 0 wherever it lies.
double HistogramDistance(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace hetero::insight
