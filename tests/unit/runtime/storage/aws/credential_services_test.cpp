#include "runtime/storage/aws/credential_services.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>

#include "runtime/storage/http/curl_client.h"
#include "runtime/storage/http/url.h"
#include "tests/integration/kube/scripted_server.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/storage/jumping_clock.h"

namespace hetero::storage {
namespace {

using kube::ScriptedServer;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

constexpr char kJson[] = R"({"Code": "Success", "AccessKeyId": "ASIA", "SecretAccessKey": "SECRET",
                             "Token": "TOKEN", "Expiration": "2026-01-01T06:00:00Z"})";

class CredentialServicesTest : public ::testing::Test {
 protected:
  void Serve(ScriptedServer::Script script) {
    server_.emplace(std::move(script), ScriptedServer::Options{.tls = false});
  }
  CredentialServices Services() {
    return {http_, clock_, [this](const std::string& name) { return variables_[name]; }};
  }
  static std::string Text(const absl::Status& status) { return std::string(status.message()); }

  std::map<std::string, std::string> variables_;
  JumpingClock clock_;
  CurlClient http_;
  TemporaryFolder folder_;
  std::optional<ScriptedServer> server_;
};

TEST_F(CredentialServicesTest, AWebIdentityIsExchangedForARole) {
  Serve([](const auto&, auto& connection) {
    connection.Respond(
        200,
        "<AssumeRoleWithWebIdentityResponse xmlns='https://sts.amazonaws.com/doc/2011-06-15/'>"
        "<AssumeRoleWithWebIdentityResult><Credentials><SessionToken>TOKEN</SessionToken>"
        "<SecretAccessKey>SECRET</SecretAccessKey><Expiration>2026-01-01T01:00:00Z</Expiration>"
        "<AccessKeyId>ASIA</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult>"
        "</AssumeRoleWithWebIdentityResponse>");
  });
  variables_ = {{"AWS_WEB_IDENTITY_TOKEN_FILE", folder_.Write("token", "ey.J+/=\n")},
                {"AWS_ROLE_ARN", "arn:aws:iam::123:role/r"},
                {"AWS_ENDPOINT_URL_STS", server_->url() + "/"}};
  const auto credentials = WebIdentityCredentials(Services())->Fetch();
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_EQ(credentials->access_key_id, "ASIA");
  EXPECT_EQ(credentials->secret_access_key, "SECRET");
  EXPECT_EQ(credentials->session_token, "TOKEN");
  EXPECT_EQ(*credentials->expires - clock_.WallNow(), std::chrono::hours(1));
  const auto request = server_->requests()[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.headers.at("content-type"), "application/x-www-form-urlencoded");
  EXPECT_EQ(request.body,
            "Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Aaws%3Aiam%3A%3A123%3Arole%2Fr&"
            "RoleSessionName=hetero&Version=2011-06-15&WebIdentityToken=ey.J%2B%2F%3D");
}

TEST_F(CredentialServicesTest, ARoleThatIsRefusedIsNamedWithoutTheToken) {
  Serve([](const auto&, auto& connection) {
    connection.Respond(403,
                       "<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not authorized"
                       "</Message></Error></ErrorResponse>");
  });
  variables_ = {{"AWS_WEB_IDENTITY_TOKEN_FILE", folder_.Write("token", "SECRET")},
                {"AWS_ROLE_ARN", "arn:r"},
                {"AWS_ENDPOINT_URL_STS", server_->url()}};
  const absl::Status status = WebIdentityCredentials(Services())->Fetch().status();
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_THAT(Text(status), AllOf(HasSubstr("the role arn:r"), HasSubstr("AccessDenied"),
                                  Not(HasSubstr("SECRET"))));
  variables_["AWS_ROLE_ARN"] = "";
  EXPECT_TRUE(absl::IsInvalidArgument(WebIdentityCredentials(Services())->Fetch().status()));
  variables_["AWS_WEB_IDENTITY_TOKEN_FILE"] = "";
  EXPECT_TRUE(absl::IsNotFound(WebIdentityCredentials(Services())->Fetch().status()));
}

TEST_F(CredentialServicesTest, StsThatCouldNotAskTheClusterIsAskedAgain) {
  Serve([](const auto&, auto& connection) {
    connection.Respond(400,
                       "<ErrorResponse><Error><Code>IDPCommunicationError</Code></Error>"
                       "</ErrorResponse>");
  });
  variables_ = {{"AWS_WEB_IDENTITY_TOKEN_FILE", folder_.Write("token", "T")},
                {"AWS_ROLE_ARN", "arn:r"},
                {"AWS_ENDPOINT_URL_STS", server_->url()}};
  EXPECT_FALSE(WebIdentityCredentials(Services())->Fetch().ok());
  EXPECT_EQ(server_->requests().size(), 3);
}

TEST_F(CredentialServicesTest, APodIdentityReadsItsTokenEachTime) {
  Serve([](const auto&, auto& connection) { connection.Respond(200, kJson); });
  variables_ = {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", server_->url() + "/v1/credentials"},
                {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", folder_.Write("token", "first\n")}};
  const auto source = ContainerCredentials(Services());
  const auto credentials = source->Fetch();
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_EQ(credentials->session_token, "TOKEN");
  folder_.Write("token", "second");
  ASSERT_TRUE(source->Fetch().ok());
  const auto requests = server_->requests();
  EXPECT_EQ(requests[0].target, "/v1/credentials");
  EXPECT_EQ(requests[0].headers.at("authorization"), "first");
  EXPECT_EQ(requests[1].headers.at("authorization"), "second");
}

TEST_F(CredentialServicesTest, APodsTokenGoesToNobodyElse) {
  variables_ = {{"AWS_CONTAINER_AUTHORIZATION_TOKEN", "SECRET"}};
  EXPECT_TRUE(absl::IsNotFound(ContainerCredentials(Services())->Fetch().status()));
  for (const char* uri : {"http://example.com/x", "http://169.254.169.254/x", "http://10.0.0.1/",
                          "ftp://127.0.0.1/", "http://127.0.0.1@example.com/"}) {
    variables_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = uri;
    const absl::Status status = ContainerCredentials(Services())->Fetch().status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << uri << " " << status;
    EXPECT_THAT(Text(status), Not(HasSubstr("SECRET")));
  }
}

// Version 2 of the metadata service: a session first, then the role, then its keys.
TEST_F(CredentialServicesTest, AnInstanceGivesTheKeysOfItsRole) {
  Serve([](const auto& request, auto& connection) {
    const std::string folder = "/latest/meta-data/iam/security-credentials/";
    if (request.method == "PUT" && request.target == "/latest/api/token") {
      EXPECT_EQ(request.headers.at("x-aws-ec2-metadata-token-ttl-seconds"), "21600");
      return connection.Respond(200, "session");
    }
    if (request.headers.count("x-aws-ec2-metadata-token") == 0 ||
        request.headers.at("x-aws-ec2-metadata-token") != "session") {
      return connection.Respond(401, "");
    }
    if (request.target == folder) return connection.Respond(200, "my-role\n");
    connection.Respond(request.target == folder + "my-role" ? 200 : 404, kJson);
  });
  variables_ = {{"AWS_EC2_METADATA_SERVICE_ENDPOINT", server_->url() + "/"}};
  const auto credentials = InstanceCredentials(Services())->Fetch();
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_EQ(credentials->access_key_id, "ASIA");
  variables_["AWS_EC2_METADATA_DISABLED"] = "True";
  EXPECT_TRUE(absl::IsNotFound(InstanceCredentials(Services())->Fetch().status()));
}

TEST_F(CredentialServicesTest, WhereNobodyAnswersThereIsNoInstance) {
  variables_ = {{"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1"}};
  EXPECT_TRUE(absl::IsNotFound(InstanceCredentials(Services())->Fetch().status()));
  Serve([](const auto& request, auto& connection) {
    connection.Respond(request.method == "PUT" ? 200 : 404, "session");
  });
  variables_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = server_->url();
  const absl::Status status = InstanceCredentials(Services())->Fetch().status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(Text(status), "the instance has no role");
}

// Another cloud's service at the same address, and an instance's that is switched off.
TEST_F(CredentialServicesTest, WhoeverGivesNoTokenIsNoInstance) {
  std::atomic<int> answer = 0;
  Serve([&answer](const auto&, auto& connection) { connection.Respond(answer, "not here"); });
  variables_ = {{"AWS_EC2_METADATA_SERVICE_ENDPOINT", server_->url()}};
  for (const int status : {400, 403, 404, 405, 501}) {
    answer = status;
    const absl::Status refused = InstanceCredentials(Services())->Fetch().status();
    EXPECT_TRUE(absl::IsNotFound(refused)) << refused;
    EXPECT_THAT(Text(refused), AllOf(HasSubstr("no token is given there"),
                                     HasSubstr("HTTP " + std::to_string(status))));
  }
}

}  // namespace
}  // namespace hetero::storage
