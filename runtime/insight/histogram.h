#pragma once

#include <cstdint>
#include <map>

namespace hetero::insight {

// How often values lay where, for their percentiles: buckets whose bounds grow by 2^(1/8), from
// 2^-24 (60 ns, in seconds) to 2^24, so at most 386 of them. A value type; not thread-safe.
class Histogram {
 public:
  static constexpr int32_t kLowest = -24 * 8;  // of all values below it, 0 and less too
  static constexpr int32_t kHighest = 24 * 8;  // of all values above it
  // Values in [2^(bucket / 8), 2^((bucket + 1) / 8)).
  static int32_t BucketOf(double value);

  // `times` that value; NaN and no times are left out.
  void Add(double value, int64_t times = 1);
  // Limits `bucket` to the range; no times are left out, and counts end at 2^61.
  void AddToBucket(int32_t bucket, int64_t times);
  void Add(const Histogram& other);

  int64_t count() const { return count_; }
  // The value that a share `share` (0..1) of all lies below, within 5 %; 0 for the lowest bucket
  // and without any.
  double Quantile(double share) const;
  const std::map<int32_t, int64_t>& buckets() const { return buckets_; }

 private:
  std::map<int32_t, int64_t> buckets_;
  int64_t count_ = 0;
};

}  // namespace hetero::insight
