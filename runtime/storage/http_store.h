#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/storage/http/http_client.h"
#include "runtime/storage/store.h"
#include "runtime/storage/store_options.h"

namespace hetero::storage {

// A web server's path: "https://host/path", below which names are escaped. It has to say how large
// objects are and to serve ranges. A version is the ETag, else the time of the last change; where
// there is neither, only a change of the size is noticed. http:// only of a loopback address: on
// the way from elsewhere anybody could change the bytes. Nothing is asked of the server here.
absl::StatusOr<std::unique_ptr<Store>> OpenHttpStore(const std::string& uri,
                                                     const StoreOptions& options,
                                                     std::unique_ptr<HttpClient> http);

}  // namespace hetero::storage
