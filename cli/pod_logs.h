#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/cluster.h"
#include "cli/options.h"

namespace hetero::cli {

struct LogPod {
  std::string name;
  std::string uid;
  std::string member;  // "gpu-0"
};

// The job's pods that --role and --index choose, in the order of roles and replicas. Errors name a
// role that the job does not have.
absl::StatusOr<std::vector<LogPod>> FindPods(Cluster& cluster, const Options& options,
                                             const nlohmann::json& job);

// What container `runtime` of the pod has written, line by line; with `follow` until it ends.
// kInvalidArgument: it has not started, in the API server's words.
absl::Status ReadLog(Cluster& cluster, const LogPod& pod, bool follow,
                     const std::function<void(std::string_view line)>& on_line,
                     std::stop_token stop);

}  // namespace hetero::cli
