#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/fake_clock.h"
#include "operator/kube/cluster_access.h"
#include "operator/kube/exec_plugin.h"
#include "operator/kube/system_authorities.h"
#include "tests/integration/kube/scripted_server.h"
#include "tests/integration/kube/server_access.h"
#include "tests/support/temporary_folder.h"

namespace hetero::kube {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr base::Duration kEnough = std::chrono::seconds(10);
constexpr char kV1[] = "client.authentication.k8s.io/v1";

std::string Script(const testing::TemporaryFolder& folder, const std::string& name,
                   const std::string& body) {
  const std::string file = folder.Write(name, "#!/bin/sh\n" + body);
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  return file;
}

std::string Kubeconfig(const ScriptedServer& server, const std::string& user) {
  return "current-context: here\n"
         "contexts: [{name: here, context: {cluster: c, user: u, namespace: team}}]\n"
         "clusters: [{name: c, cluster: {server: '" +
         server.url() + "', certificate-authority: ca.crt}}]\nusers: [{name: u, user: " + user +
         "}]\n";
}

void RespondOk(const ScriptedServer::Request&, ScriptedServer::Connection& connection) {
  connection.Respond(200, "{}");
}

TEST(Credentials, AKubeconfigWithCertificateFilesBesideIt) {
  ScriptedServer server(RespondOk, {.require_client_certificate = true});
  const auto leaf = server.IssueClientCertificate("jane");
  const testing::TemporaryFolder folder;
  folder.Write("ca.crt", server.ca_pem());
  folder.Write("jane.crt", leaf.certificate_pem);
  folder.Write("jane.key", leaf.key_pem);
  const std::string file = folder.Write(
      "config", Kubeconfig(server, "{client-certificate: jane.crt, client-key: jane.key}"));
  const auto access = KubeconfigAccess(base::Clock::Real(), file);
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->name_space, "team");
  const auto response = TransportTo(*access)->Send({.path = "/x"}, kEnough);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(server.requests().at(0).client_common_name, "jane");
}

TEST(Credentials, AServiceAccountWhoseTokenIsRotated) {
  ScriptedServer server(RespondOk);
  const testing::TemporaryFolder folder;
  folder.Write("ca.crt", server.ca_pem());
  folder.Write("namespace", "hetero-system\n");
  folder.Write("token", "one\n");
  setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1", 1);
  setenv("KUBERNETES_SERVICE_PORT", std::to_string(server.port()).c_str(), 1);
  base::FakeClock clock;
  const auto access = InClusterAccess(clock, folder.path());
  unsetenv("KUBERNETES_SERVICE_HOST");
  unsetenv("KUBERNETES_SERVICE_PORT");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->name_space, "hetero-system");
  const auto transport = TransportTo(*access);
  ASSERT_TRUE(transport->Send({.path = "/x"}, kEnough).ok());
  folder.Write("token", "two\n");
  ASSERT_TRUE(transport->Send({.path = "/x"}, kEnough).ok());
  clock.Advance(std::chrono::seconds(61));
  ASSERT_TRUE(transport->Send({.path = "/x"}, kEnough).ok());
  std::vector<std::string> shown;
  for (const auto& request : server.requests()) {
    shown.push_back(request.headers.at("authorization"));
  }
  EXPECT_THAT(shown, ::testing::ElementsAre("Bearer one", "Bearer one", "Bearer two"));
}

TEST(Credentials, ATokenRotatedWithinTheMinuteIsFoundAfterA401) {
  ScriptedServer server([](const auto& request, auto& connection) {
    connection.Respond(request.headers.at("authorization") == "Bearer two" ? 200 : 401, "{}");
  });
  const testing::TemporaryFolder folder;
  folder.Write("ca.crt", server.ca_pem());
  folder.Write("token", "one");
  const std::string file = folder.Write("config", Kubeconfig(server, "{tokenFile: token}"));
  const auto access = KubeconfigAccess(base::Clock::Real(), file);
  ASSERT_TRUE(access.ok()) << access.status();
  folder.Write("token", "two");
  const auto response = TransportTo(*access)->Send({.path = "/x"}, kEnough);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 200);
}

TEST(Credentials, OutsideAPodIsAPrecondition) {
  base::FakeClock clock;
  EXPECT_EQ(InClusterAccess(clock, "/no/such/folder").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(Credentials, AServiceAccountOfAnIpv6Cluster) {
  if (!ScriptedServer::HasIpv6()) GTEST_SKIP() << "this machine has no ::1: IPv6 is NOT TESTED";
  ScriptedServer server(RespondOk, {.ipv6 = true});
  const testing::TemporaryFolder folder;
  folder.Write("ca.crt", server.ca_pem());
  folder.Write("token", "one");
  setenv("KUBERNETES_SERVICE_HOST", "::1", 1);
  setenv("KUBERNETES_SERVICE_PORT", std::to_string(server.port()).c_str(), 1);
  const auto access = InClusterAccess(base::Clock::Real(), folder.path());
  unsetenv("KUBERNETES_SERVICE_HOST");
  unsetenv("KUBERNETES_SERVICE_PORT");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->server, server.url());
  const auto response = TransportTo(*access)->Send({.path = "/x"}, kEnough);
  EXPECT_TRUE(response.ok()) << response.status();
}

TEST(Credentials, AnExecPluginIsRunAgainBeforeItsCredentialExpires) {
  ScriptedServer server(RespondOk);
  const testing::TemporaryFolder folder;
  folder.Write("ca.crt", server.ca_pem());
  // Counts its runs, and gives a credential for the first hour of the fake clock's year.
  Script(folder, "plugin", R"sh(echo run >> "$1"
printf '%s' "$KUBERNETES_EXEC_INFO" > "$1.info"
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":
  {"token":"'"$PREFIX"'-'"$(wc -l < "$1" | tr -d ' ')"'","expirationTimestamp":"2026-01-01T01:00:00Z"}}'
)sh");
  const std::string file = folder.Write(
      "config",
      Kubeconfig(server,
                 "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, "
                 "args: ['" +
                     folder / "runs" +
                     "'], env: [{name: PREFIX, value: t}], provideClusterInfo: true}}"));
  base::FakeClock clock;
  const auto access = KubeconfigAccess(clock, file);
  ASSERT_TRUE(access.ok()) << access.status();
  const auto transport = TransportTo(*access);
  for (int minutes : {0, 59, 1}) {
    clock.Advance(std::chrono::minutes(minutes));
    const auto response = transport->Send({.path = "/x"}, kEnough);
    ASSERT_TRUE(response.ok()) << response.status();
  }
  std::vector<std::string> shown;
  for (const auto& request : server.requests()) {
    shown.push_back(request.headers.at("authorization"));
  }
  EXPECT_THAT(shown, ::testing::ElementsAre("Bearer t-1", "Bearer t-1", "Bearer t-2"));
  std::ifstream info(folder / "runs.info");
  const auto given = nlohmann::json::parse(info);
  EXPECT_EQ(given["apiVersion"], kV1);
  EXPECT_EQ(given["spec"]["cluster"]["server"], server.url());
}

TEST(Credentials, AFailingPluginSaysWhy) {
  ScriptedServer server(RespondOk);
  const testing::TemporaryFolder folder;
  folder.Write("ca.crt", server.ca_pem());
  Script(folder, "plugin", "echo 'please log in' >&2; exit 3\n");
  const std::string file = folder.Write(
      "config",
      Kubeconfig(server,
                 "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin}}"));
  const auto access = KubeconfigAccess(base::Clock::Real(), file);
  ASSERT_TRUE(access.ok()) << access.status();
  const std::string error = TransportTo(*access)->Send({.path = "/x"}, kEnough).status().ToString();
  EXPECT_THAT(error, HasSubstr("please log in"));
  EXPECT_THAT(error, HasSubstr("exited with 3"));
  EXPECT_THAT(error, HasSubstr(file));
  EXPECT_THAT(error, HasSubstr("user \"u\""));
}

TEST(Credentials, APluginThatHangsIsEndedWithAllItStarted) {
  const testing::TemporaryFolder folder;
  const std::string plugin = Script(folder, "plugin", "echo waiting >&2; sleep 60 & sleep 60\n");
  const auto result =
      RunExecPlugin({.command = plugin, .api_version = kV1, .deadline = milliseconds(200)});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(result.status().ToString(), HasSubstr("waiting"));
}

TEST(Credentials, WithoutTheSystemsAuthoritiesPluginsStillFindThem) {
  ScriptedServer server(RespondOk);
  EXPECT_TRUE(TransportTo(server)->Send({.path = "/x"}, kEnough).ok());
  const testing::TemporaryFolder folder;
  const std::string plugin =
      Script(folder, "plugin", "echo \"file=$SSL_CERT_FILE.\" >&2; exit 1\n");
  const auto result = RunExecPlugin({.command = plugin, .api_version = kV1});
  EXPECT_THAT(result.status().ToString(), HasSubstr("file=" + *HiddenCertificateFile() + "."));
}

TEST(Credentials, APluginThatIsMissingIsNamedWithItsHint) {
  const auto result = RunExecPlugin({.command = "no-such-plugin-at-all",
                                     .api_version = kV1,
                                     .install_hint = "install it like this"});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(result.status().ToString(), HasSubstr("install it like this"));
}

TEST(Credentials, WhatAPluginPrintsIsChecked) {
  for (
      const char* output :
      {"", "[]", "{}", R"({"kind":"ExecCredential"})",
       R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":7})",
       R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","status":{"token":"t"}})",
       R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"clientCertificateData":"c"}})",
       R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"t","expirationTimestamp":"soon"}})"}) {
    EXPECT_EQ(ParseExecCredential(output, kV1).status().code(), absl::StatusCode::kUnauthenticated)
        << output;
  }
}

}  // namespace
}  // namespace hetero::kube
