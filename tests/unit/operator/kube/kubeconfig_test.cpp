#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/fake_clock.h"
#include "operator/kube/cluster_access.h"
#include "tests/support/temporary_folder.h"

namespace hetero::kube {
namespace {

using ::testing::HasSubstr;

// "ca" in base64 is Y2E=, "cert" Y2VydA==, "key" a2V5.
constexpr char kConfig[] = R"(
apiVersion: v1
kind: Config
current-context: one
contexts:
- {name: one, context: {cluster: c, user: certificate, namespace: team}}
- {name: two, context: {cluster: c, user: token}}
- {name: nobody, context: {cluster: c}}
- {name: lost-cluster, context: {cluster: gone, user: token}}
- {name: lost-user, context: {cluster: c, user: gone}}
- {name: lost-file, context: {cluster: c, user: file}}
- {name: half, context: {cluster: c, user: half}}
- {name: bad-base64, context: {cluster: c, user: bad-base64}}
- {name: old-exec, context: {cluster: c, user: old-exec}}
- {name: other-way, context: {cluster: c, user: other-way}}
clusters:
- name: c
  cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: Y2E=, tls-server-name: api}
users:
- {name: certificate, user: {client-certificate-data: Y2VydA==, client-key-data: a2V5}}
- {name: token, user: {token: "1234567"}}
- {name: file, user: {tokenFile: no-such-file}}
- {name: half, user: {client-key-data: a2V5}}
- {name: bad-base64, user: {client-certificate-data: "!!", client-key-data: a2V5}}
- {name: old-exec, user: {exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}}}
- {name: other-way, user: {auth-provider: {name: gcp}}}
)";

struct Fixture {
  absl::StatusOr<ClusterAccess> Read(const std::string& context = "") {
    return KubeconfigAccess(clock, file, context);
  }

  testing::TemporaryFolder folder;
  base::FakeClock clock;
  std::string file = folder.Write("config", kConfig);
};

TEST(Kubeconfig, TheCurrentContext) {
  Fixture f;
  const auto access = f.Read();
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->server, "https://10.0.0.1:6443");
  EXPECT_EQ(access->ca_pem, "ca");
  EXPECT_EQ(access->tls_server_name, "api");
  EXPECT_EQ(access->name_space, "team");
  const auto credential = access->credentials->Get(false);
  ASSERT_TRUE(credential.ok()) << credential.status();
  EXPECT_EQ(credential->certificate_pem, "cert");
  EXPECT_EQ(credential->key_pem, "key");
}

TEST(Kubeconfig, AnotherContext) {
  Fixture f;
  const auto access = f.Read("two");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->name_space, "default");
  EXPECT_EQ(access->credentials->Get(false)->token, "1234567");
  EXPECT_TRUE(f.Read("nobody").ok());
}

TEST(Kubeconfig, ErrorsNameFileAndEntry) {
  Fixture f;
  const std::pair<const char*, const char*> cases[] = {
      {"missing", "context \"missing\" is not in contexts"},
      {"lost-cluster", "cluster \"gone\" is not in clusters"},
      {"lost-user", "user \"gone\" is not in users"},
      {"lost-file", "user \"file\""},
      {"lost-file", "no-such-file"},
      {"half", "go together"},
      {"bad-base64", "client-certificate-data is no base64"},
      {"old-exec", "exec.apiVersion"},
      {"other-way", "user \"other-way\": none of token"},
  };
  for (const auto& [context, words] : cases) {
    const absl::Status status = f.Read(context).status();
    EXPECT_THAT(status.ToString(), HasSubstr(words));
    EXPECT_THAT(status.ToString(), HasSubstr(f.folder.path()));
  }
}

TEST(Kubeconfig, FilesOfAnyShapeAreErrors) {
  Fixture f;
  for (const char* text :
       {"", "7", "[]", "a: [", "contexts: 7", "current-context: a", "current-context: {a: b}",
        "{current-context: a, contexts: [7, [], {name: a}]}",
        "{current-context: a, contexts: [{name: a, context: 7}], clusters: [{name: '', cluster: "
        "7}]}",
        "{current-context: a, contexts: {name: a}}"}) {
    const std::string file = f.folder.Write("odd", text);
    EXPECT_FALSE(KubeconfigAccess(f.clock, file).ok()) << text;
  }
  EXPECT_EQ(KubeconfigAccess(f.clock, "/no/such/file").status().code(),
            absl::StatusCode::kNotFound);
}

// A token that ends up in a header must not start another one.
TEST(Kubeconfig, ATokenWithALineBreakIsRefused) {
  Fixture f;
  const std::string file = f.folder.Write("odd", R"(
current-context: a
contexts: [{name: a, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://x"}}]
users: [{name: u, user: {token: "a\r\nImpersonate-User: root"}}]
)");
  EXPECT_EQ(KubeconfigAccess(f.clock, file).status().code(), absl::StatusCode::kUnauthenticated);
}

TEST(DefaultAccess, TheFirstFileOfTheVariableThatExists) {
  Fixture f;
  setenv("KUBECONFIG", ("/no/such/file:" + f.file).c_str(), 1);
  const auto access = DefaultAccess(f.clock);
  EXPECT_TRUE(access.ok()) << access.status();
  setenv("KUBECONFIG", "/no/such/file", 1);
  EXPECT_EQ(DefaultAccess(f.clock).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(DefaultAccess(f.clock, f.file, "two").ok());
  unsetenv("KUBECONFIG");
}

}  // namespace
}  // namespace hetero::kube
