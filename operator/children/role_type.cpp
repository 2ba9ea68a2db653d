#include "operator/children/role_type.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "api/role_type.h"

namespace hetero::children {

std::string CertificateKey(api::RoleType type) {
  return absl::StrCat(absl::AsciiStrToLower(api::NameOf(type)), ".crt");
}

std::string PrivateKeyKey(api::RoleType type) {
  return absl::StrCat(absl::AsciiStrToLower(api::NameOf(type)), ".key");
}

}  // namespace hetero::children
