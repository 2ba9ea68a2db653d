#include "runtime/storage/stores.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "api/storage_keys.h"
#include "runtime/storage/open_store.h"

namespace hetero::storage {
namespace {

// Of a decimal that was checked; empty is nothing.
double Number(const std::string& decimal) {
  double number = 0;
  return absl::SimpleAtod(decimal, &number) ? number : 0;
}

StoreOptions OptionsOfEntry(const api::StorageAccess& access, size_t index,
                            const Environment& environment) {
  StoreOptions options;
  options.endpoint = access.endpoint;
  options.region = access.region;
  options.path_style = access.path_style;
  options.anonymous = access.anonymous.value_or(false);
  options.ca_bundle = access.ca_bundle;
  if (access.prices) {
    options.prices.per_request = Number(access.prices->per_thousand_gets) / 1e3;
    options.prices.per_byte = Number(access.prices->per_gb_egress) / 1e9;
  }
  options.environment = environment;
  if (access.secret_ref) {
    options.keys = {.secret = absl::StrCat("spec.storage[", index, "].secretRef: the Secret \"",
                                           access.secret_ref->name, "\""),
                    .access_key_id = api::StorageVariable(index, api::kAccessKeyId),
                    .secret_access_key = api::StorageVariable(index, api::kSecretAccessKey),
                    .session_token = api::StorageVariable(index, api::kSessionToken)};
  }
  return options;
}

bool BeginsWithParts(std::string_view name, std::string_view parts) {
  if (!name.starts_with(parts)) return false;
  return parts.empty() || name.size() == parts.size() || name[parts.size()] == '/';
}

}  // namespace

Stores::Stores(const std::vector<api::StorageAccess>& storage, Environment environment)
    : environment_(std::move(environment)) {
  for (size_t i = 0; i < storage.size(); ++i) {
    // One that is no URI, which no manifest has, is of no store: its root is empty.
    entries_.push_back({SplitUri(storage[i].prefix).value_or(ObjectUri()),
                        OptionsOfEntry(storage[i], i, environment_)});
  }
}

int Stores::EntryOf(const ObjectUri& object) const {
  int longest = -1;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const ObjectUri& prefix = entries_[i].prefix;
    if (prefix.root.empty() || prefix.root != object.root ||
        !BeginsWithParts(object.name, prefix.name)) {
      continue;
    }
    if (longest < 0 || prefix.name.size() > entries_[longest].prefix.name.size()) {
      longest = static_cast<int>(i);
    }
  }
  return longest;
}

StoreOptions Stores::OptionsOf(const ObjectUri& object) const {
  if (const int entry = EntryOf(object); entry >= 0) return entries_[entry].options;
  StoreOptions options;
  options.environment = environment_;
  return options;
}

StoreOptions Stores::OptionsFor(std::string_view uri) const {
  return OptionsOf(SplitUri(uri).value_or(ObjectUri()));
}

absl::StatusOr<std::unique_ptr<Store>> Stores::Open(const std::string& uri) const {
  return OpenStore(uri, OptionsFor(uri));
}

absl::StatusOr<std::unique_ptr<WritableStore>> Stores::OpenWritable(
    const std::string& uri, const RetryOptions& retries) const {
  StoreOptions options = OptionsFor(uri);
  options.retries = retries;
  return OpenWritableStore(uri, options);
}

absl::StatusOr<std::unique_ptr<Store>> Stores::OpenRootOf(const ObjectUri& object) const {
  return OpenStore(object.root, OptionsOf(object));
}

absl::StatusOr<std::unique_ptr<WritableStore>> Stores::OpenWritableRootOf(
    const ObjectUri& object) const {
  return OpenWritableStore(object.root, OptionsOf(object));
}

}  // namespace hetero::storage
