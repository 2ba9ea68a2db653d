#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "api/process_environment.h"

// How the access keys of an entry of spec.storage come from the Secret that its secretRef names
// into processes: the operator gives the container `runtime` a variable for each key, by a
// secretKeyRef, and reads no Secret itself.
namespace hetero::api {

// Keys of the Secret, which are named as AWS's own variables are. There is no other.
inline constexpr char kAccessKeyId[] = "AWS_ACCESS_KEY_ID";
inline constexpr char kSecretAccessKey[] = "AWS_SECRET_ACCESS_KEY";
inline constexpr char kSessionToken[] = "AWS_SESSION_TOKEN";  // of temporary keys alone
inline constexpr const char* kStorageKeys[] = {kAccessKeyId, kSecretAccessKey, kSessionToken};

// The variable that holds `key` of spec.storage[entry]: HETERO_STORAGE_0_ACCESS_KEY_ID.
inline std::string StorageVariable(size_t entry, std::string_view key) {
  constexpr std::string_view kAws = "AWS_";
  return environment::kStorage + std::to_string(entry) + "_" + std::string(key.substr(kAws.size()));
}

}  // namespace hetero::api
