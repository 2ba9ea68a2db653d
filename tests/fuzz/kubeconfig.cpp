#include "base/fake_clock.h"
#include "operator/kube/cluster_access.h"
#include "operator/kube/exec_plugin.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/temporary_folder.h"

// A kubeconfig file; and the same bytes as what an exec plugin prints. No plugin is run.
namespace hetero::kube {
namespace {

// The system's endless files are whoever writes his own kubeconfig's trouble.
bool NamesSystemFiles(std::string_view text) {
  for (const std::string_view folder : {"/dev", "/proc", "/sys", "../"}) {
    if (text.find(folder) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace
}  // namespace hetero::kube

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero;
  using fuzz::Require;
  fuzz::Silence();
  const std::string text(fuzz::TextOf(data, size));
  if (kube::NamesSystemFiles(text)) return 0;
  // Its own: a kubeconfig names other files of its folder.
  static const testing::TemporaryFolder folder;
  const std::string file = folder.Write("config", text);
  base::FakeClock clock;
  const absl::StatusOr<kube::ClusterAccess> access = kube::KubeconfigAccess(clock, file);
  if (access.ok()) {
    Require(!access->server.empty(), "access to no server");
    Require(access->credentials != nullptr, "access without credentials");
    Require(!access->name_space.empty(), "access without a namespace");
  } else {
    Require(access.status().message().find(file) != absl::string_view::npos,
            "an error that does not name the file");
  }
  for (const char* version :
       {"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"}) {
    const absl::StatusOr<kube::ExecCredential> printed = kube::ParseExecCredential(text, version);
    if (!printed.ok()) continue;
    const kube::Credential& credential = printed->credential;
    Require(!credential.token.empty() || !credential.certificate_pem.empty(),
            "a credential without anything to show");
    Require(credential.certificate_pem.empty() == credential.key_pem.empty(),
            "a certificate without its key");
  }
  return 0;
}
