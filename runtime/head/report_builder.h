#pragma once

#include <optional>
#include <vector>

#include "runtime/head/job_record.h"
#include "runtime/insight/report.h"

namespace hetero::head {

// The report of an ended job, with what its earlier heads and attempts left, or of a running one as
// of `now`. Figures that no member has reported and, for input-only runs, those of training are
// absent.
insight::Report BuildReport(const JobRecord& record, Moment now);

// Parts of it. Where each entry of the pipeline runs and what it costs; empty until rank 0 has
// told.
std::vector<insight::ReportPlacement> BuildPlacement(const JobRecord& record);
// What its attempts have cost so far; absent where no role has a price.
std::optional<double> CostDollars(const JobRecord& record, Moment now);

}  // namespace hetero::head
