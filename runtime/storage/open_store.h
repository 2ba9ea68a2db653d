#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/storage/store_options.h"
#include "runtime/storage/writable_store.h"

namespace hetero::storage {

// The store at `uri`: file:///folder, s3://bucket/prefix, https://host/path. Errors name the URI,
// and the schemes where it has none of them. file:// looks whether the folder is there; the others
// ask nothing yet. s3:// makes this process non-dumpable (base/non_dumpable.h), for good.
absl::StatusOr<std::unique_ptr<Store>> OpenStore(const std::string& uri,
                                                 const StoreOptions& options = {});

// One that can be written to. kUnimplemented: https://.
absl::StatusOr<std::unique_ptr<WritableStore>> OpenWritableStore(const std::string& uri,
                                                                 const StoreOptions& options = {});

// What the stores of this process that lie behind a network were asked for since it began.
RequestFigures RequestsOfProcess();

}  // namespace hetero::storage
