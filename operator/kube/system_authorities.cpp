#include "operator/kube/system_authorities.h"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "operator/kube/rest_transport.h"

namespace hetero::kube {
namespace {

std::optional<std::string>& Hidden() {
  static auto* const hidden = new std::optional<std::string>;
  return *hidden;
}

}  // namespace

void KeepSystemAuthoritiesFromCpprest() {
  if (Hidden().has_value()) return;
  const char* variable = X509_get_default_cert_file_env();
  const char* file = std::getenv(variable);
  Hidden() = file == nullptr ? "" : file;
  setenv(variable, "/dev/null", /*overwrite=*/1);
}

const std::optional<std::string>& HiddenCertificateFile() { return Hidden(); }

std::vector<std::string> EnvironmentForPrograms() {
  constexpr std::string_view kChanged = "SSL_CERT_FILE=";
  const std::optional<std::string>& hidden = Hidden();
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (hidden && std::string_view(*entry).starts_with(kChanged)) continue;
    variables.emplace_back(*entry);
  }
  if (hidden && !hidden->empty()) variables.push_back(std::string(kChanged) + *hidden);
  return variables;
}

void TrustSystemAuthorities(SSL_CTX* context) {
  SSL_CTX_set_default_verify_paths(context);
  if (Hidden().has_value()) {
    const std::string& file = *Hidden();
    SSL_CTX_load_verify_file(context, file.empty() ? X509_get_default_cert_file() : file.c_str());
  }
  ERR_clear_error();  // a system without authorities is no error here; the handshake will tell
}

}  // namespace hetero::kube
