#include "operator/kube/system_authorities.h"

#include <gtest/gtest.h>
#include <openssl/x509.h>

#include <cstdlib>

#include "operator/kube/rest_transport.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/base/test_certificates.h"

namespace hetero::kube {
namespace {

constexpr char kVariable[] = "SSL_CERT_FILE";

// How many authorities a context trusts before it looks into folders.
int Trusted() {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  TrustSystemAuthorities(context);
  const int count = sk_X509_OBJECT_num(X509_STORE_get0_objects(SSL_CTX_get_cert_store(context)));
  SSL_CTX_free(context);
  return count;
}

// The variable belongs to the whole process, and is hidden once in its life: each case is a process
// of its own, whose exit code says whether it was `as_expected`.
template <typename AsExpected>
void InAProcessOfItsOwn(AsExpected as_expected) {
  EXPECT_EXIT(std::_Exit(as_expected() ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

TEST(SystemAuthorities, AFileThatIsNamedStaysTrusted) {
  const testing::TemporaryFolder folder;
  const std::string file = folder.Write("ca.pem", base::TestAuthority().certificate_pem());
  InAProcessOfItsOwn([&file] {
    setenv(kVariable, file.c_str(), /*overwrite=*/1);
    KeepSystemAuthoritiesFromCpprest();
    KeepSystemAuthoritiesFromCpprest();  // the second time there is nothing to hide
    return std::string(std::getenv(kVariable)) == "/dev/null" && HiddenCertificateFile() == file &&
           Trusted() == 1;
  });
}

TEST(SystemAuthorities, NoFileIsNamed) {
  InAProcessOfItsOwn([] {
    unsetenv(kVariable);
    KeepSystemAuthoritiesFromCpprest();
    return std::string(std::getenv(kVariable)) == "/dev/null" && HiddenCertificateFile() == "";
  });
}

TEST(SystemAuthorities, NothingIsHiddenUnasked) {
  InAProcessOfItsOwn([] { return !HiddenCertificateFile().has_value(); });
}

}  // namespace
}  // namespace hetero::kube
