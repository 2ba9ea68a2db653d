#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "api/field_table.h"
#include "api/validate.h"

namespace hetero::api {
namespace {

// A web server knows nothing of regions and signatures.
void CheckWebAccess(const StorageAccess& access, const std::string& path, Findings& findings) {
  const auto refuse = [&](bool given, const char* field) {
    if (!given) return;
    findings.Add(Child(path, field), "is taken only with a prefix of s3://; leave it out");
  };
  refuse(!access.endpoint.empty(), "endpoint");
  refuse(!access.region.empty(), "region");
  refuse(access.path_style.has_value(), "pathStyle");
  refuse(access.anonymous.has_value(), "anonymous");
  refuse(access.secret_ref.has_value(), "secretRef");
}

}  // namespace

void ValidateStorage(const std::vector<StorageAccess>& storage, const std::string& list,
                     Findings& findings) {
  std::map<std::string, size_t> first_index;
  for (size_t i = 0; i < storage.size(); ++i) {
    const StorageAccess& access = storage[i];
    const std::string path = Element(list, i);
    const auto [first, is_new] = first_index.emplace(access.prefix, i);
    if (!is_new && !access.prefix.empty()) {
      findings.Add(Child(path, "prefix"),
                   absl::StrCat("'", access.prefix, "' is the prefix of ",
                                Element(list, first->second), " too; remove one of them"));
    }
    if (findings.Broken(path)) continue;
    if (access.prefix.starts_with("https://")) {
      CheckWebAccess(access, path, findings);
    } else if (access.anonymous.value_or(false) && access.secret_ref) {
      findings.Add(
          Child(path, "secretRef"),
          "is not taken beside anonymous: true, which signs no request; remove one of them");
    }
  }
}

}  // namespace hetero::api
