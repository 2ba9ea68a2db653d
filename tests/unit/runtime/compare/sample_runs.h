#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/compare/run_report.h"

namespace hetero::compare {

// A report.json of a job of 4 CPU workers, and one of the same job with other replicas, batch and
// rate; every field that is compared is set. The numbers are made up and fixed.
nlohmann::json ReportOfSlowRun();
nlohmann::json ReportOfFastRun();

// As read from `place`. Fails the test and gives an empty one when it is no report.
RunReport ReadRun(const nlohmann::json& report, const std::string& place = "out/run");

// Points a second apart, each `rates` steps further than the one before.
nlohmann::json TimeLine(const std::vector<double>& rates);

}  // namespace hetero::compare
