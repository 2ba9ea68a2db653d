#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/storage/aws/renewed_credentials.h"
#include "runtime/storage/http/http_client.h"
#include "runtime/storage/store_options.h"
#include "runtime/storage/writable_store.h"

namespace hetero::storage {

// A bucket of S3, or of a server that speaks its language, below a prefix: "s3://bucket/prefix".
// Names are bytes without rules; keys that end with "/" are what consoles make for folders, and no
// objects. A version is the ETag, and every Read() is of that version only. Nothing is asked of the
// server here.
absl::StatusOr<std::unique_ptr<WritableStore>> OpenS3Store(
    const std::string& uri, const StoreOptions& options, std::unique_ptr<HttpClient> http,
    std::shared_ptr<RenewedCredentials> credentials);

}  // namespace hetero::storage
