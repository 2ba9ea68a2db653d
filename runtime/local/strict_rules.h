#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

// What `hetero-runtime local --strict-rules` makes of a job that succeeded.
namespace hetero::local {

// One line for each finding of a report that still held when the job ended, causes first,
// below a heading that counts them; empty: there is none. `report_json` is a report.json; one
// without findings, of an earlier version, has none. kInvalidArgument: it is no report. Pure.
absl::StatusOr<std::string> HeldFindings(std::string_view report_json);

// The same of the report.json in the folder `output`; errors also of a file that cannot be read.
absl::StatusOr<std::string> HeldFindingsIn(const std::string& output);

}  // namespace hetero::local
