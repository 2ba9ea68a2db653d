#pragma once

#include "runtime/insight/report.h"

namespace hetero::insight {

// A report with every field set; the numbers are made up and fixed.
Report FullReport();

}  // namespace hetero::insight
