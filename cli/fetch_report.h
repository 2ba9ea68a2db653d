#pragma once

#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cli/cluster.h"
#include "cli/job_view.h"
#include "cli/options.h"

namespace hetero::cli {

// Whether a finished job's report is on a volume of its head: reportUri is file:///...
bool HasReportFiles(const JobView& view);

struct ReportFiles {
  std::string json;
  std::string html;
};
// Reads the report through a short-lived pod (reader_pod.h), which is deleted again whatever
// happens, `stop` included. Waits up to two minutes; the error then says what the pod waits for.
absl::StatusOr<ReportFiles> FetchReport(Cluster& cluster, const Options& options,
                                        const JobView& view, const nlohmann::json& object,
                                        base::Clock& clock, std::stop_token stop);

}  // namespace hetero::cli
