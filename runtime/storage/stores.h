#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "runtime/storage/http/persistent_client.h"
#include "runtime/storage/object_uri.h"
#include "runtime/storage/store_options.h"
#include "runtime/storage/writable_store.h"

namespace hetero::storage {

// Opens the stores of a job, each as spec.storage says: the entry counts whose prefix has the most
// parts of a path that the store's URI begins with ("s3://bucket/a" is of "s3://bucket/a/b", not
// of "s3://bucket/ab"). What it leaves empty, and all where there is no entry, is as StoreOptions
// leaves it. Copyable, immutable.
class Stores {
 public:
  Stores() = default;  // no entries
  explicit Stores(const std::vector<api::StorageAccess>& storage,
                  Environment environment = ProcessEnvironment());

  // OpenStore() and OpenWritableStore() at this URI. `retries` of each call.
  absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& uri) const;
  absl::StatusOr<std::unique_ptr<WritableStore>> OpenWritable(
      const std::string& uri, const RetryOptions& retries = {}) const;
  // The store of an object, at its root, as the object is reached.
  absl::StatusOr<std::unique_ptr<Store>> OpenRootOf(const ObjectUri& object) const;
  absl::StatusOr<std::unique_ptr<WritableStore>> OpenWritableRootOf(const ObjectUri& object) const;

  // Of the entry that counts, where it stands in spec.storage; -1: there is none. Objects of one
  // root with the same entry are reached alike.
  int EntryOf(const ObjectUri& object) const;

  bool empty() const { return entries_.empty(); }

  // By which the store at this URI is opened; of what is no URI, those without an entry.
  StoreOptions OptionsFor(std::string_view uri) const;

 private:
  struct Entry {
    ObjectUri prefix;
    StoreOptions options;
  };
  StoreOptions OptionsOf(const ObjectUri& object) const;

  std::vector<Entry> entries_;  // as in spec.storage
  Environment environment_ = ProcessEnvironment();
};

}  // namespace hetero::storage
