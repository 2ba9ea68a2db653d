#include "operator/children/role_type.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace hetero::children {

std::string RoleTypeName(api::RoleType type) {
  switch (type) {
    case api::RoleType::kHead:
      return "Head";
    case api::RoleType::kCpuWorker:
      return "CPUWorker";
    case api::RoleType::kGpuWorker:
      return "GPUWorker";
  }
  return "";
}

std::string CertificateKey(api::RoleType type) {
  return absl::StrCat(absl::AsciiStrToLower(RoleTypeName(type)), ".crt");
}

std::string PrivateKeyKey(api::RoleType type) {
  return absl::StrCat(absl::AsciiStrToLower(RoleTypeName(type)), ".key");
}

}  // namespace hetero::children
