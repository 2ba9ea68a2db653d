#pragma once

#include <string>
#include <vector>

#include "runtime/insight/report.h"

namespace hetero::insight {

// A sentence for each Python operator whose cost was measured: its share of the pipeline's CPU time
// on the CPU workers, which is what a native operator in its place can save at most.
std::vector<std::string> PythonCosts(const Report& report);

}  // namespace hetero::insight
