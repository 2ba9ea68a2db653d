#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/head/report_place.h"

// What a job has in an object store beside its dataset: output.uri, and what it begins from.
namespace hetero::process {

bool IsStoreUri(std::string_view uri);

// A head's report in a store, "s3://bucket/prefix". Nothing is asked of the server here. A call
// that fails is tried again for half a minute at most: a pod that ends is not waited for much
// longer. kInvalidArgument: no such URI.
absl::StatusOr<std::unique_ptr<head::ReportPlace>> ReportInStore(const std::string& uri);

// Copies these files and folders of a local folder to `uri`, those that are there. The error names
// what could not be written.
absl::Status CopyOutput(const std::string& folder, const std::vector<std::string>& names,
                        const std::string& uri);

// Copies one object of a store, "s3://bucket/prefix/name", into a file.
absl::Status FetchObject(const std::string& uri, const std::string& path);

}  // namespace hetero::process
