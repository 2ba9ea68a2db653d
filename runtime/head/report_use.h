#pragma once

#include "runtime/head/job_record.h"
#include "runtime/insight/report.h"

namespace hetero::head {

// What the members used, and where their batches spent their time, as far as this head was told.
void AddUse(const JobRecord& record, insight::Report& report);

}  // namespace hetero::head
