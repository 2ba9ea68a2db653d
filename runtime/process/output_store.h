#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "runtime/head/report_place.h"

// What a job has in an object store beside its dataset: output.uri, and what it begins from. Stores
// are reached as `storage` says, the job's spec.storage.
namespace hetero::process {

bool IsStoreUri(std::string_view uri);

// A head's report in a store, "s3://bucket/prefix". Nothing is asked of the server here. Each call
// that fails is tried again for half a minute at most: a pod that ends is not waited for for long.
// kInvalidArgument: no such URI.
absl::StatusOr<std::unique_ptr<head::ReportPlace>> ReportInStore(
    const std::string& uri, const std::vector<api::StorageAccess>& storage);

// Whether something can be written to `uri`, which is to show now and not after hours of training:
// a small object is written, and removed where that is allowed.
absl::Status CheckOutputStore(const std::string& uri,
                              const std::vector<api::StorageAccess>& storage);

// Copies these files and folders of a local folder to `uri`, those that are there. A call that
// fails is tried again for `patience`. The error names what could not be written.
absl::Status CopyOutput(const std::string& folder, const std::vector<std::string>& names,
                        const std::string& uri, const std::vector<api::StorageAccess>& storage,
                        base::Duration patience, const std::stop_token& stop);

// Copies one object of a store, "s3://bucket/prefix/name", into a file.
absl::Status FetchObject(const std::string& uri, const std::vector<api::StorageAccess>& storage,
                         const std::string& path);

}  // namespace hetero::process
