#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/integration/kube/scripted_server.h"
#include "tests/integration/kube/server_access.h"

// Who is trusted, and what is shown.
namespace hetero::kube {
namespace {

using ::testing::HasSubstr;

constexpr base::Duration kEnough = std::chrono::seconds(10);

void RespondOk(const ScriptedServer::Request&, ScriptedServer::Connection& connection) {
  connection.Respond(200, "{}");
}

void Respond401Unless(const std::string& token, const ScriptedServer::Request& request,
                      ScriptedServer::Connection& connection) {
  const auto header = request.headers.find("authorization");
  const bool good = header != request.headers.end() && header->second == "Bearer " + token;
  connection.Respond(good ? 200 : 401, "{}");
}

TEST(TransportTls, AnotherAuthorityIsRefused) {
  ScriptedServer server(RespondOk), other(RespondOk);
  ClusterAccess access = AccessTo(server);
  access.ca_pem = other.ca_pem();
  const auto response = TransportTo(access)->Send({.path = "/x"}, kEnough);
  EXPECT_EQ(response.status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(response.status().ToString(), HasSubstr("certificate is refused"));
  EXPECT_TRUE(server.requests().empty());
}

TEST(TransportTls, WithoutAnAuthorityOfItsOwnAnUnknownOneIsRefused) {
  ScriptedServer server(RespondOk);
  ClusterAccess access = AccessTo(server);
  access.ca_pem = "";
  EXPECT_EQ(TransportTo(access)->Send({.path = "/x"}, kEnough).status().code(),
            absl::StatusCode::kUnauthenticated);
}

TEST(TransportTls, AnAuthorityThatIsNoPemIsAnError) {
  ScriptedServer server(RespondOk);
  ClusterAccess access = AccessTo(server);
  access.ca_pem = "nonsense";
  const auto response = TransportTo(access)->Send({.path = "/x"}, kEnough);
  EXPECT_EQ(response.status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(response.status().ToString(), HasSubstr("no PEM certificate"));
}

TEST(TransportTls, ANameThatIsNotInTheCertificateIsRefused) {
  ScriptedServer server(RespondOk);
  ClusterAccess access = AccessTo(server);
  access.tls_server_name = "kubernetes.example";
  const auto response = TransportTo(access)->Send({.path = "/x"}, kEnough);
  EXPECT_EQ(response.status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(response.status().ToString(), HasSubstr("not made out to this host"));
  EXPECT_TRUE(server.requests().empty());
}

TEST(TransportTls, TheServerNameStandsInForTheHost) {
  ScriptedServer server(RespondOk);
  ClusterAccess access = AccessTo(server);
  // 127.0.0.2 is not in the certificate.
  access.server = "https://127.0.0.2:" + std::to_string(server.port());
  EXPECT_FALSE(TransportTo(access)->Send({.path = "/x"}, kEnough).ok());
  access.server = server.url();
  access.tls_server_name = "localhost";
  const auto response = TransportTo(access)->Send({.path = "/x"}, kEnough);
  EXPECT_TRUE(response.ok()) << response.status();
}

TEST(TransportTls, AnIpv6AddressIsDialledAndLookedForInTheCertificate) {
  if (!ScriptedServer::HasIpv6()) GTEST_SKIP() << "this machine has no ::1: IPv6 is NOT TESTED";
  ScriptedServer server(RespondOk, {.ipv6 = true});
  const std::string authority = "[::1]:" + std::to_string(server.port());
  ASSERT_EQ(server.url(), "https://" + authority);
  const auto transport = TransportTo(server);
  EXPECT_EQ(transport->host(), authority);
  const auto response = transport->Send({.path = "/x?a=b"}, kEnough);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(server.requests().at(0).target, "/x?a=b");
  EXPECT_EQ(server.requests().at(0).headers.at("host"), authority);

  ClusterAccess access = AccessTo(server);
  access.tls_server_name = "::2";  // an address that the certificate does not hold
  const auto refused = TransportTo(access)->Send({.path = "/x"}, kEnough);
  EXPECT_THAT(refused.status().ToString(), HasSubstr("not made out to this host"));
  access.tls_server_name = "localhost";
  EXPECT_TRUE(TransportTo(access)->Send({.path = "/x"}, kEnough).ok());
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST(TransportTls, AServersCertificateMayBeRenewedButNotByAnotherAuthority) {
  ScriptedServer server([](const auto&, auto& connection) {
    connection.Respond(200, "{}", "Connection: close\r\n");
    connection.Close();
  });
  const auto transport = TransportTo(server);
  ASSERT_TRUE(transport->Send({.path = "/x"}, kEnough).ok());
  server.RenewCertificate();
  ASSERT_TRUE(transport->Send({.path = "/x"}, kEnough).ok());
  server.ShowForeignCertificate();
  EXPECT_EQ(transport->Send({.path = "/x"}, kEnough).status().code(),
            absl::StatusCode::kUnauthenticated);
  server.RenewCertificate();
  EXPECT_TRUE(transport->Send({.path = "/x"}, kEnough).ok());
  EXPECT_EQ(server.requests().size(), 3u);
}

TEST(TransportTls, NoVerificationWhereAskedFor) {
  ScriptedServer server(RespondOk), other(RespondOk);
  ClusterAccess access = AccessTo(server);
  access.ca_pem = other.ca_pem();
  access.insecure_skip_tls_verify = true;
  const auto response = TransportTo(access)->Send({.path = "/x"}, kEnough);
  EXPECT_TRUE(response.ok()) << response.status();
}

TEST(TransportTls, Tls11IsRefused) {
  ScriptedServer server(RespondOk, {.only_tls_1_1 = true});
  const auto response = TransportTo(server)->Send({.path = "/x"}, kEnough);
  EXPECT_EQ(response.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(server.requests().empty());
}

TEST(TransportTls, AClientCertificateIsShown) {
  ScriptedServer server(RespondOk, {.require_client_certificate = true});
  const auto leaf = server.IssueClientCertificate("operator");
  const auto credentials = std::make_shared<TestCredentials>(
      Credential{.certificate_pem = leaf.certificate_pem, .key_pem = leaf.key_pem});
  const auto response = TransportTo(AccessTo(server, credentials))->Send({.path = "/x"}, kEnough);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(server.requests().at(0).client_common_name, "operator");
}

TEST(TransportTls, AMissingClientCertificateIsNamed) {
  ScriptedServer server(RespondOk, {.require_client_certificate = true});
  const auto response = TransportTo(server)->Send({.path = "/x"}, kEnough);
  EXPECT_EQ(response.status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(response.status().ToString(), HasSubstr("certificate required"));
}

TEST(TransportTls, AClientCertificateOfAnotherAuthorityIsNamed) {
  ScriptedServer server(RespondOk, {.require_client_certificate = true}), other(RespondOk);
  const auto leaf = other.IssueClientCertificate("operator");
  const auto credentials = std::make_shared<TestCredentials>(
      Credential{.certificate_pem = leaf.certificate_pem, .key_pem = leaf.key_pem});
  const auto response = TransportTo(AccessTo(server, credentials))->Send({.path = "/x"}, kEnough);
  EXPECT_EQ(response.status().code(), absl::StatusCode::kUnauthenticated) << response.status();
}

TEST(TransportTls, AKeyThatDoesNotFitIsNamed) {
  ScriptedServer server(RespondOk);
  const auto credentials = std::make_shared<TestCredentials>(
      Credential{.certificate_pem = server.IssueClientCertificate("a").certificate_pem,
                 .key_pem = server.IssueClientCertificate("b").key_pem});
  const auto response = TransportTo(AccessTo(server, credentials))->Send({.path = "/x"}, kEnough);
  EXPECT_EQ(response.status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(response.status().ToString(), HasSubstr("does not fit"));
}

TEST(TransportTls, ARenewedClientCertificateIsUsedAtOnce) {
  ScriptedServer server(RespondOk, {.require_client_certificate = true});
  const auto first = server.IssueClientCertificate("first");
  const auto second = server.IssueClientCertificate("second");
  const auto credentials = std::make_shared<TestCredentials>(
      Credential{.certificate_pem = first.certificate_pem, .key_pem = first.key_pem});
  const auto transport = TransportTo(AccessTo(server, credentials));
  ASSERT_TRUE(transport->Send({.path = "/x"}, kEnough).ok());
  credentials->Set({.certificate_pem = second.certificate_pem, .key_pem = second.key_pem});
  ASSERT_TRUE(transport->Send({.path = "/x"}, kEnough).ok());
  EXPECT_EQ(server.requests().at(1).client_common_name, "second");
}

TEST(TransportTls, ARenewedTokenIsUsedAtOnce) {
  ScriptedServer server(RespondOk);
  const auto credentials = std::make_shared<TestCredentials>(Credential{.token = "one"});
  const auto transport = TransportTo(AccessTo(server, credentials));
  ASSERT_TRUE(transport->Send({.path = "/x"}, kEnough).ok());
  credentials->Set({.token = "two"});
  ASSERT_TRUE(transport->Send({.path = "/x"}, kEnough).ok());
  EXPECT_EQ(server.requests().at(0).headers.at("authorization"), "Bearer one");
  EXPECT_EQ(server.requests().at(1).headers.at("authorization"), "Bearer two");
  EXPECT_EQ(server.connections(), 1);
}

TEST(TransportTls, ARefusedTokenIsReplacedOnce) {
  ScriptedServer server(
      [](const auto& request, auto& connection) { Respond401Unless("new", request, connection); });
  const auto credentials = std::make_shared<TestCredentials>(Credential{.token = "old"});
  credentials->SetAfterRefresh({.token = "new"});
  const auto transport = TransportTo(AccessTo(server, credentials));
  std::vector<std::jthread> callers;
  for (int i = 0; i < 20; ++i) {
    callers.emplace_back([&] {
      const auto response = transport->Send({.path = "/x"}, kEnough);
      ASSERT_TRUE(response.ok()) << response.status();
      EXPECT_EQ(response->status, 200);
    });
  }
  callers.clear();
  EXPECT_EQ(credentials->refreshes(), 1);
}

TEST(TransportTls, ATokenThatStaysRefusedIsA401) {
  ScriptedServer server(
      [](const auto& request, auto& connection) { Respond401Unless("new", request, connection); });
  const auto credentials = std::make_shared<TestCredentials>(Credential{.token = "old"});
  credentials->SetAfterRefresh({.token = "also old"});
  const auto transport = TransportTo(AccessTo(server, credentials));
  const auto response = transport->Send({.path = "/x"}, kEnough);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 401);
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST(TransportTls, NoTokenGoesOverPlainHttp) {
  ScriptedServer server(RespondOk, {.tls = false});
  const auto transport =
      TransportTo(AccessTo(server, std::make_shared<TestCredentials>(Credential{.token = "t"})));
  const auto response = transport->Send({.path = "/x"}, kEnough);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_FALSE(server.requests().at(0).headers.contains("authorization"));
}

}  // namespace
}  // namespace hetero::kube
