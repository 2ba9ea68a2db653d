#pragma once

#include <stop_token>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cli/cluster.h"
#include "cli/options.h"

// What the verbs do. Each gives the exit code, or an error for the user.
namespace hetero::cli {

inline constexpr int kExitFailed = 1;
inline constexpr int kExitTimeout = 3;
inline constexpr int kExitInterrupted = 130;  // 128 + SIGINT, as shells have it
inline constexpr int kExitOutputGone = 141;   // 128 + SIGPIPE: nobody reads what is printed

// All jobs, one a line; with --watch until `stop`.
absl::StatusOr<int> List(Cluster& cluster, const Options& options, base::Clock& clock,
                         std::stop_token stop);
// What each pod of the job does and takes; with --watch until the job ends.
absl::StatusOr<int> Top(Cluster& cluster, const Options& options, base::Clock& clock,
                        std::stop_token stop);
// What one job has cost, or each of the namespace and all together.
absl::StatusOr<int> Cost(Cluster& cluster, const Options& options, base::Clock& clock,
                         std::stop_token stop);
// Follows the job until it has ended; on a terminal as one screen, elsewhere as a line per change.
absl::StatusOr<int> FollowStatus(Cluster& cluster, const Options& options, base::Clock& clock,
                                 std::stop_token stop);
// Every line with its pod in front: "gpu-0 | ...". One pod after the other; followed, all at once
// and those that come later too.
absl::StatusOr<int> Logs(Cluster& cluster, const Options& options, base::Clock& clock,
                         std::stop_token stop);
absl::StatusOr<int> SetSuspend(Cluster& cluster, const Options& options, bool suspend);
// What a finished job came to; from its volume where the report itself is asked for.
absl::StatusOr<int> Report(Cluster& cluster, const Options& options, base::Clock& clock,
                           std::stop_token stop);
// Needs a cluster with --server only.
absl::StatusOr<int> Validate(const Options& options, base::Clock& clock);

}  // namespace hetero::cli
