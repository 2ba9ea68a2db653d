#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/storage/s3_connection.h"
#include "runtime/storage/writable_store.h"

// What OpenS3Store() does to single objects besides reading them. `connection` outlives writers.
namespace hetero::storage {

absl::StatusOr<Object> HeadS3(S3Connection& connection, std::string_view name);

// One PUT where all fits into a part, else an upload in parts that is completed at Close() and
// aborted without it.
std::unique_ptr<ObjectWriter> CreateS3Writer(S3Connection& connection, std::string name,
                                             int64_t part_bytes);

// WriteIfMatch(), or with `old` null WriteIfAbsent().
absl::StatusOr<Object> PutS3If(S3Connection& connection, const std::string& name, const Object* old,
                               std::string_view bytes);

absl::Status DeleteS3(S3Connection& connection, std::string_view name);

}  // namespace hetero::storage
