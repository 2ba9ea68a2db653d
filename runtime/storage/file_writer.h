#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/storage/writable_store.h"

namespace hetero::storage {

// What OpenFileStore() writes: the calls of WritableStore below the folder `root`, with names that
// were checked. Written under a name with kTemporaryMark in the same folder, synced, then given
// their name.
absl::StatusOr<std::unique_ptr<ObjectWriter>> CreateFileWriter(const std::string& root,
                                                               std::string name);
absl::StatusOr<Object> WriteFileIfAbsent(const std::string& root, std::string name,
                                         std::string_view bytes);
absl::StatusOr<Object> WriteFileIfMatch(const std::string& root, const Object& old,
                                        std::string_view bytes);

}  // namespace hetero::storage
