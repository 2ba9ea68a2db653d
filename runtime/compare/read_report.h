#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/compare/run_report.h"
#include "runtime/storage/stores.h"

namespace hetero::compare {

// More is no report that a job writes: curves and lists in it are bounded.
inline constexpr int64_t kMaxReportBytes = int64_t{64} << 20;

// Reads a report: a file, or report.json in a folder, of this machine, or, as a URI
// ("s3://bucket/run"), of a store. Errors as of ParseReport(), and of files that are not there,
// that cannot be read, or that have more than kMaxReportBytes. A store may keep it waiting as long
// as its calls are tried again.
absl::StatusOr<RunReport> ReadReport(const std::string& place, const storage::Stores& stores);

}  // namespace hetero::compare
