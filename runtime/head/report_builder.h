#pragma once

#include "runtime/head/job_record.h"
#include "runtime/insight/report.h"

namespace hetero::head {

// The report of an ended job, or of a running one as of `now`. Figures that no member has reported
// and, for input-only runs, those of training are absent.
insight::Report BuildReport(const JobRecord& record, base::WallTime now);

}  // namespace hetero::head
