#pragma once

#include <string>

#include "runtime/insight/report.h"

// One finding of a report in words, on one line. Pure.
namespace hetero::insight {

// "SlowWorker (cpu-0): it takes 3 times as long as others; look at its node".
std::string FindingText(const ReportFinding& finding);

// What it has cost: "12.5 s of training, $0.75"; empty: that is not known.
std::string FindingCost(const ReportFinding& finding);

// Both, and that it does not hold any more, as far as there is something to say.
std::string FindingLine(const ReportFinding& finding);

}  // namespace hetero::insight
