#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/source/dataset.h"
#include "runtime/source/manifest_samples.h"
#include "runtime/storage/stores.h"

namespace hetero::source {

// A manifest: one object that lists pictures, which lie wherever it says. It is a list of paths or
// JSON lines as SageMaker has them, or a table (manifest_entry.h). Samples are in its order, and
// each is an object of its own, read by one request. Their sizes and versions are known when they
// are first read: from then on another size or version is an error that names the object. The
// fingerprint is of the paths and the labels.
//
// `open` opens the stores, OpenerOf() in earnest. kInvalidArgument names the line or byte
// that cannot be, and the remedy; kNotFound: there is no such manifest.
absl::StatusOr<std::unique_ptr<Dataset>> OpenManifest(const std::string& uri,
                                                      const StoreOpener& open,
                                                      const api::DatasetSource& source,
                                                      const api::Label& label);

// Opens stores as `stores` does, each once.
StoreOpener OpenerOf(storage::Stores stores);

// Whether a manifest, as far as its beginning shows, is at `uri`: what a web server has, can be
// nothing else; in a folder or a bucket it is an object, no prefix. Errors are the store's.
absl::StatusOr<bool> HasManifest(const std::string& uri, const StoreOpener& open,
                                 const api::DatasetSource& source);

}  // namespace hetero::source
