#include "runtime/head/bad_sample_log.h"

namespace hetero::head {

bool BadSampleLog::Add(const v1::BadSampleReport& report) {
  std::set<int64_t>& ids = report.validation() ? validation_ : training_;
  if (!ids.insert(report.sample_id()).second) return false;
  if (first_.size() < kMaxKept) first_.push_back(report);
  return true;
}

std::string BadSampleLog::Describe(bool validation, int limit) const {
  std::string text;
  for (const v1::BadSampleReport& sample : first_) {
    if (sample.validation() != validation || limit-- <= 0) continue;
    if (!text.empty()) text += ", ";
    text += std::to_string(sample.sample_id()) + " (" + sample.reason() + ")";
  }
  return text;
}

}  // namespace hetero::head
