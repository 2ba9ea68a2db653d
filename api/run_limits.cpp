#include "api/run_limits.h"

#include "absl/strings/str_cat.h"

namespace hetero::api {

std::string DescribeActiveDeadline(int64_t seconds) {
  return absl::StrCat("runPolicy.activeDeadlineSeconds: the job has run for ", seconds,
                      " s without finishing");
}

std::string DescribeStall(int64_t seconds) {
  return absl::StrCat("runPolicy.stallTimeoutSeconds: no step for ", seconds, " s");
}

std::string DescribeRestartsExceeded(const std::string& cause, int32_t max_restarts) {
  return absl::StrCat(cause, "; runPolicy.maxRestarts allows ", max_restarts,
                      max_restarts == 1 ? " restart" : " restarts");
}

}  // namespace hetero::api
