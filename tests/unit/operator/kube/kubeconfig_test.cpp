#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

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

// A variable of the environment, for the time of a test; null: not set.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    Set(value);
  }
  ~Environment() { Set(before_ ? before_->c_str() : nullptr); }

 private:
  void Set(const char* value) {
    if (value == nullptr) {
      unsetenv(name_);
    } else {
      setenv(name_, value, 1);
    }
  }

  const char* const name_;
  std::optional<std::string> before_;
};

// Inside a pod with a service account, and with nothing else that names a cluster.
struct InPod : Fixture {
  absl::StatusOr<ClusterAccess> Access(const std::string& given = "",
                                       const std::string& context = "") {
    return DefaultAccess(clock, given, context, folder.path() + "/account");
  }
  std::string ServerOf(const absl::StatusOr<ClusterAccess>& access) {
    EXPECT_TRUE(access.ok()) << access.status();
    return access.ok() ? access->server : "";
  }
  // A kubeconfig with one context, cluster and user.
  std::string Config(const std::string& path, const std::string& context,
                     const std::string& server) {
    return folder.Write(path, "{current-context: " + context + ", contexts: [{name: " + context +
                                  ", context: {cluster: c-" + context +
                                  "}}], clusters: [{name: c-" + context + ", cluster: {server: \"" +
                                  server + "\"}}]}");
  }

  Environment host{"KUBERNETES_SERVICE_HOST", "10.96.0.1"};
  Environment port{"KUBERNETES_SERVICE_PORT", "443"};
  Environment variable{"KUBECONFIG", nullptr};
  Environment home{"HOME", folder.path().c_str()};
  std::string token = folder.Write("account/token", "t");
  std::string ca = folder.Write("account/ca.crt", "ca");
};

constexpr char kOwnCluster[] = "https://10.96.0.1:443";

TEST(DefaultAccess, APodWithoutAKubeconfigTalksToItsOwnCluster) {
  InPod f;
  EXPECT_EQ(f.ServerOf(f.Access()), kOwnCluster);
}

// kubectl hetero suspend, typed in a pod, reached the pod's own cluster instead.
TEST(DefaultAccess, InAPodTheKubeconfigOfTheHomeFolderComesBeforeTheServiceAccount) {
  InPod f;
  f.Config(".kube/config", "far", "https://far:6443");
  EXPECT_EQ(f.ServerOf(f.Access()), "https://far:6443");
}

TEST(DefaultAccess, InAPodAContextIsNeverPassedOver) {
  InPod f;
  const absl::Status status = f.Access("", "far").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("context \"far\""));
  EXPECT_THAT(status.message(), HasSubstr(f.folder.path() + "/.kube/config does not exist"));
  f.Config(".kube/config", "other", "https://other:6443");
  EXPECT_THAT(f.Access("", "far").status().message(),
              HasSubstr(".kube/config: context \"far\" is not in contexts"));
}

TEST(DefaultAccess, WhatIsGivenComesFirstThenTheVariableThenTheHomeFolder) {
  InPod f;
  f.Config(".kube/config", "home", "https://home:6443");
  const std::string one = f.Config("one", "one", "https://one:6443");
  const Environment variable("KUBECONFIG", one.c_str());
  EXPECT_EQ(f.ServerOf(f.Access()), "https://one:6443");
  EXPECT_EQ(f.ServerOf(f.Access(f.file, "two")), "https://10.0.0.1:6443");
}

TEST(DefaultAccess, FilesOfTheVariableAreMergedAndTheFirstToNameSomethingWins) {
  InPod f;
  const std::string one = f.Config("one", "one", "https://one:6443");
  const std::string two = f.Config("two", "two", "https://two:6443");
  const std::string again = f.Config("again", "two", "https://wrong:6443");
  const std::string list = "/no/such/file:" + one + "::" + two + ":" + again;
  const Environment variable("KUBECONFIG", list.c_str());
  EXPECT_EQ(f.ServerOf(f.Access()), "https://one:6443") << "the first current-context";
  EXPECT_EQ(f.ServerOf(f.Access("", "two")), "https://two:6443");
  const std::string missing(f.Access("", "three").status().message());
  EXPECT_THAT(missing, HasSubstr(one + ", " + two + ", " + again));
  EXPECT_THAT(missing, HasSubstr("context \"three\" is not in contexts"));
}

TEST(DefaultAccess, AContextMayTakeItsClusterFromAnotherFileWhoseFolderItsPathsAreMeantFrom) {
  InPod f;
  f.folder.Write("clusters/ca.pem", "authority");
  const std::string contexts = f.folder.Write(
      "contexts", "{current-context: a, contexts: [{name: a, context: {cluster: c, user: u}}]}");
  const std::string clusters = f.folder.Write(
      "clusters/config",
      "{clusters: [{name: c, cluster: {server: \"https://c\", certificate-authority: ca.pem}}], "
      "users: [{name: u, user: {token: abc}}]}");
  const Environment variable("KUBECONFIG", (contexts + ":" + clusters).c_str());
  const auto access = f.Access();
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->ca_pem, "authority");
  EXPECT_EQ(access->credentials->Get(false)->token, "abc");
}

TEST(DefaultAccess, AVariableNoneOfWhoseFilesExistsIsAnError) {
  InPod f;
  const Environment variable("KUBECONFIG", "/no/such/file:/nor/this");
  const absl::Status status = f.Access().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("/no/such/file:/nor/this"));
  EXPECT_TRUE(f.Access(f.file, "two").ok());
}

TEST(DefaultAccess, WithoutAnythingItSaysWhatWasLookedAt) {
  InPod f;
  const Environment outside("KUBERNETES_SERVICE_HOST", nullptr);
  const absl::Status status = f.Access().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr(f.folder.path() + "/.kube/config"));
  EXPECT_THAT(status.message(), HasSubstr("no pod"));
}

}  // namespace
}  // namespace hetero::kube
