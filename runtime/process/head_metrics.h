#pragma once

#include <string>

#include "base/metrics.h"
#include "hetero/v1/status.pb.h"
#include "runtime/insight/report.h"

// The metrics of a job's head, by the rules of member_metrics.h.
namespace hetero::process {

// The head's view of the job, but for findings, of which those that are over have to be known.
void PublishStatus(const v1::JobStatus& status, metrics::Registry& registry);
void PublishFinding(const std::string& rule, bool active, metrics::Registry& registry);

// What the head knows and its status does not say: accuracy, restarts, faults, dollars. What is
// not known is left out.
void PublishReport(const insight::Report& report, metrics::Registry& registry);

}  // namespace hetero::process
