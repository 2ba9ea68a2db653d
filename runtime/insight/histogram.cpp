#include "runtime/insight/histogram.h"

#include <algorithm>
#include <cmath>

namespace hetero::insight {
namespace {

constexpr double kBucketsPerDoubling = 8;
constexpr int64_t kMostTimes = int64_t{1} << 61;

}  // namespace

int32_t Histogram::BucketOf(double value) {
  if (!(value > 0)) return kLowest;
  const double bucket = std::floor(std::log2(value) * kBucketsPerDoubling);
  return static_cast<int32_t>(std::clamp<double>(bucket, kLowest, kHighest));
}

void Histogram::Add(double value, int64_t times) {
  if (!std::isnan(value)) AddToBucket(BucketOf(value), times);
}

void Histogram::AddToBucket(int32_t bucket, int64_t times) {
  times = std::min(times, kMostTimes - count_);
  if (times <= 0) return;
  buckets_[std::clamp(bucket, kLowest, kHighest)] += times;
  count_ += times;
}

void Histogram::Add(const Histogram& other) {
  for (const auto& [bucket, times] : other.buckets_) AddToBucket(bucket, times);
}

double Histogram::Quantile(double share) const {
  if (count_ == 0) return 0;
  const double wanted = std::clamp(share, 0.0, 1.0) * static_cast<double>(count_);
  int32_t found = kLowest;
  double below = 0;
  for (const auto& [bucket, times] : buckets_) {
    found = bucket;
    below += static_cast<double>(times);
    if (below >= wanted) break;
  }
  return found == kLowest ? 0 : std::exp2((found + 0.5) / kBucketsPerDoubling);
}

}  // namespace hetero::insight
