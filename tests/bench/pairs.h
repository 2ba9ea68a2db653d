#pragma once

#include <time.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace hetero::bench {

// CPU time of the calling thread: other processes of the machine do not count.
inline double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

inline double Median(std::vector<double> values) {
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Comparison {
  double ours = 0;  // median CPU seconds of one call
  double theirs = 0;
  double ratio = 0;  // median of theirs / ours, pair by pair
  double low = 0;    // 95 % interval of the ratio's mean
  double high = 0;
};

// Runs the two alternately, `pairs` times after one pair of warm-up; each gets the pair's number.
template <class Ours, class Theirs>
Comparison Compare(int pairs, Ours ours, Theirs theirs) {
  std::vector<double> own, other, ratios;
  double sum = 0, squares = 0;
  for (int pair = 0; pair <= pairs; ++pair) {
    const double begin = CpuSeconds();
    ours(pair);
    const double middle = CpuSeconds();
    theirs(pair);
    const double end = CpuSeconds();
    if (pair == 0) continue;
    own.push_back(middle - begin);
    other.push_back(end - middle);
    ratios.push_back(other.back() / own.back());
    sum += ratios.back();
    squares += ratios.back() * ratios.back();
  }
  const double mean = sum / pairs;
  const double spread =
      1.96 * std::sqrt(std::max(0.0, squares / pairs - mean * mean) / (pairs - 1));
  return {Median(own), Median(other), Median(ratios), mean - spread, mean + spread};
}

}  // namespace hetero::bench
