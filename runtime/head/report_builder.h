#pragma once

#include "runtime/head/job_record.h"
#include "runtime/insight/report.h"

namespace hetero::head {

// The report of an ended job, with what its earlier heads and attempts left, or of a running one as
// of `now`. Figures that no member has reported and, for input-only runs, those of training are
// absent.
insight::Report BuildReport(const JobRecord& record, Moment now);

}  // namespace hetero::head
