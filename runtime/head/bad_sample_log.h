#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "hetero/v1/membership.pb.h"

namespace hetero::head {

// The distinct bad samples of a job, over all ranks. Keeps the first kMaxKept with their reasons
// and the ids of all. A value type.
class BadSampleLog {
 public:
  static constexpr size_t kMaxKept = 100;

  // False when this id of this dataset is already known.
  bool Add(const v1::BadSampleReport& report);

  int64_t distinct() const { return training() + validation(); }
  int64_t training() const { return static_cast<int64_t>(training_.size()); }
  int64_t validation() const { return static_cast<int64_t>(validation_.size()); }
  // In order of arrival, at most kMaxKept.
  const std::vector<v1::BadSampleReport>& first() const { return first_; }
  // "17 (truncated JPEG), 40 (label 1001 of 1000)": at most `limit` samples of one dataset.
  std::string Describe(bool validation, int limit) const;

 private:
  std::set<int64_t> training_;
  std::set<int64_t> validation_;
  std::vector<v1::BadSampleReport> first_;
};

}  // namespace hetero::head
