#pragma once

#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "runtime/storage/stores.h"
#include "runtime/storage/writable_store.h"

namespace hetero::storage {

// Writes the file `folder/name`, or every file below it where it is a folder, into the store under
// the same name; what is not there is none. Errors name the file or the object. kCancelled: stop
// was requested between two blocks.
absl::Status CopyIntoStore(const std::string& folder, const std::string& name, WritableStore& store,
                           const std::stop_token& stop = {});

// Writes the object at `uri`, "s3://bucket/prefix/name", into the file `path`, whole or not at all.
// Errors name the object or the file.
absl::Status CopyIntoFile(const std::string& uri, const Stores& stores, const std::string& path);

}  // namespace hetero::storage
