#include "api/storage_defaults.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/decode.h"
#include "api/field_table.h"
#include "api/findings.h"
#include "api/validate.h"
#include "api/yaml_document.h"

namespace hetero::api {
namespace {

constexpr char kList[] = "storage";

absl::Status Wrong(const std::vector<FieldError>& errors) {
  return absl::InvalidArgumentError(
      absl::StrJoin(errors, "; ", [](std::string* text, const FieldError& error) {
        absl::StrAppend(text, error.path, ": ", error.reason);
      }));
}

void RefuseSecrets(const std::vector<StorageAccess>& storage, Findings& findings) {
  for (size_t i = 0; i < storage.size(); ++i) {
    if (!storage[i].secret_ref) continue;
    findings.AddBroken(
        Child(Element(kList, i), "secretRef"),
        "is not taken here: the Secret would have to be in every job's namespace; "
        "leave it out, and have jobs that need keys name them in their spec.storage");
  }
}

}  // namespace

absl::StatusOr<std::vector<StorageAccess>> ParseStorageDefaults(std::string_view text) {
  const YamlDocument document = ReadYamlValue(text);
  if (!document.errors.empty()) return Wrong(document.errors);
  std::vector<StorageAccess> storage;
  Findings findings;
  DecodeStorage(document.root, kList, storage, findings);
  RefuseSecrets(storage, findings);
  ValidateStorage(storage, kList, findings);
  if (!findings.errors().empty()) return Wrong(findings.errors());
  return storage;
}

void AddStorageDefaults(const std::vector<StorageAccess>& defaults,
                        std::vector<StorageAccess>& storage) {
  const size_t own = storage.size();
  for (const StorageAccess& access : defaults) {
    const auto end = storage.begin() + static_cast<std::ptrdiff_t>(own);
    const bool has_its_own = std::any_of(storage.begin(), end, [&](const StorageAccess& of_job) {
      return of_job.prefix == access.prefix;
    });
    if (!has_its_own) storage.push_back(access);
  }
}

}  // namespace hetero::api
