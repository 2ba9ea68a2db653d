#include "runtime/storage/aws/credential_services.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "runtime/storage/aws/credential_files.h"
#include "runtime/storage/aws/credential_replies.h"
#include "runtime/storage/aws/s3_replies.h"
#include "runtime/storage/http/persistent_client.h"
#include "runtime/storage/http/url.h"

namespace hetero::storage {
namespace {

constexpr int64_t kMostReplyBytes = 64 << 10;
constexpr int64_t kMostTokenBytes = 16 << 10;

constexpr RetryOptions kRetries = {.backoff = {.initial = std::chrono::milliseconds(100),
                                               .max = std::chrono::seconds(2),
                                               .jitter = 0.5},
                                   .most_attempts = 3,
                                   .total = std::chrono::seconds(10)};
constexpr HttpDeadlines kDeadlines = {.connect = std::chrono::seconds(3),
                                      .idle = std::chrono::seconds(5),
                                      .total = std::chrono::seconds(8)};

// Where nobody answers there is no such service, and that is usual.
constexpr RetryOptions kInstanceRetries = {
    .backoff = kRetries.backoff, .most_attempts = 2, .total = std::chrono::seconds(10)};
constexpr HttpDeadlines kInstanceDeadlines = {.connect = std::chrono::seconds(1),
                                              .idle = std::chrono::seconds(2),
                                              .total = std::chrono::seconds(3)};

// Replies of services whose errors are like STS's.
Judgement Judge(const HttpResponse& response) {
  Judgement judgement = JudgeStatus(response);
  if (judgement.verdict == Judgement::Verdict::kDone) return judgement;
  const S3Error error = ReadS3Error(response.body);
  // STS could not ask the cluster whose token it is.
  if (error.code == "IDPCommunicationError") judgement.verdict = Judgement::Verdict::kAgain;
  if (!error.code.empty()) absl::StrAppend(&judgement.reason, " ", error.code);
  if (!error.message.empty()) absl::StrAppend(&judgement.reason, ": ", error.message);
  return judgement;
}

class Service : public CredentialSource {
 public:
  explicit Service(CredentialServices services, const RetryOptions& retries = kRetries,
                   const HttpDeadlines& deadlines = kDeadlines)
      : services_(std::move(services)),
        client_(services_.http, services_.clock, limit_, retries, deadlines) {}

 protected:
  std::string Variable(const std::string& name) const { return services_.environment(name); }

  absl::StatusOr<std::string> Ask(const std::string& what, HttpRequest request) {
    request.most_body_bytes = kMostReplyBytes;
    HETERO_ASSIGN_OR_RETURN(
        PersistentClient::Answer answer,
        client_.Send({.what = what, .prepare = [&] { return request; }, .judge = Judge}));
    if (answer.response.overflow) return absl::DataLossError(absl::StrCat(what, ": a long reply"));
    return std::move(answer.response.body);
  }

  // Without the line end that editors put there.
  absl::StatusOr<std::string> ReadToken(const std::string& file) const {
    HETERO_ASSIGN_OR_RETURN(std::string token, base::ReadFile(file, kMostTokenBytes));
    absl::StripAsciiWhitespace(&token);
    if (token.empty()) return absl::DataLossError(absl::StrCat("the token in ", file, " is empty"));
    return token;
  }

  static absl::Status In(const std::string& what, const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(what, ": ", status.message()));
  }

 private:
  const CredentialServices services_;
  ConcurrencyLimit limit_;
  PersistentClient client_;
};

class WebIdentity : public Service {
 public:
  using Service::Service;
  std::string name() const override { return "AWS_WEB_IDENTITY_TOKEN_FILE"; }

  absl::StatusOr<AwsCredentials> Fetch() override {
    const std::string file = Variable("AWS_WEB_IDENTITY_TOKEN_FILE");
    const std::string role = Variable("AWS_ROLE_ARN");
    if (file.empty()) return absl::NotFoundError("not set");
    if (role.empty()) return absl::InvalidArgumentError("AWS_ROLE_ARN is not set beside it");
    std::string session = Variable("AWS_ROLE_SESSION_NAME");
    if (session.empty()) session = "hetero";
    HETERO_ASSIGN_OR_RETURN(const std::string token, ReadToken(file));
    const std::string body = SortedQuery({{"Action", "AssumeRoleWithWebIdentity"},
                                          {"RoleArn", role},
                                          {"RoleSessionName", session},
                                          {"Version", "2011-06-15"},
                                          {"WebIdentityToken", token}});
    const std::string endpoint = Endpoint();
    const std::string what = absl::StrCat("cannot assume the role ", role, " at ", endpoint);
    HETERO_ASSIGN_OR_RETURN(
        const std::string reply,
        Ask(what, {.method = "POST",
                   .url = endpoint + "/",
                   .headers = {{"Content-Type", "application/x-www-form-urlencoded"}},
                   .body = body}));
    absl::StatusOr<AwsCredentials> credentials = ReadAssumedRole(reply);
    if (!credentials.ok()) return In(what, credentials.status());
    return credentials;
  }

 private:
  std::string Endpoint() const {
    if (std::string endpoint = Variable("AWS_ENDPOINT_URL_STS"); !endpoint.empty()) {
      while (absl::EndsWith(endpoint, "/")) endpoint.pop_back();
      return endpoint;
    }
    std::string region = Variable("AWS_REGION");
    if (region.empty()) region = Variable("AWS_DEFAULT_REGION");
    if (region.empty()) return "https://sts.amazonaws.com";
    return absl::StrCat("https://sts.", region, ".amazonaws.com",
                        absl::StartsWith(region, "cn-") ? ".cn" : "");
  }
};

class Container : public Service {
 public:
  using Service::Service;
  std::string name() const override { return "AWS_CONTAINER_CREDENTIALS_FULL_URI"; }

  absl::StatusOr<AwsCredentials> Fetch() override {
    const std::string relative = Variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const std::string full = Variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    if (relative.empty() && full.empty()) return absl::NotFoundError("not set");
    HttpRequest request{.url = relative.empty() ? full : "http://169.254.170.2" + relative,
                        .use_proxy = false};
    HETERO_ASSIGN_OR_RETURN(const Url url, Allowed(request.url));
    if (const std::string file = Variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
        !file.empty()) {
      HETERO_ASSIGN_OR_RETURN(std::string token, ReadToken(file));
      request.headers.emplace_back("Authorization", std::move(token));
    } else if (std::string token = Variable("AWS_CONTAINER_AUTHORIZATION_TOKEN"); !token.empty()) {
      request.headers.emplace_back("Authorization", std::move(token));
    }
    const std::string what = absl::StrCat("cannot get the pod's credentials of ", url.authority);
    HETERO_ASSIGN_OR_RETURN(const std::string reply, Ask(what, std::move(request)));
    absl::StatusOr<AwsCredentials> credentials = ReadCredentialJson(reply);
    if (!credentials.ok()) return In(what, credentials.status());
    return credentials;
  }

 private:
  static absl::StatusOr<Url> Allowed(const std::string& address) {
    const std::string variable = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
    const absl::StatusOr<Url> url =
        ParseUrl(std::string_view(address).substr(0, address.find_first_of("?#")));
    if (!url.ok()) return In(variable, url.status());
    if (url->scheme == "https" || IsLoopback(url->host) || url->host == "169.254.170.2" ||
        url->host == "169.254.170.23" || url->host == "fd00:ec2::23") {
      return *url;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(variable, " names ", url->authority,
                     ", which is neither an agent of this machine nor https"));
  }
};

class Instance : public Service {
 public:
  explicit Instance(CredentialServices services)
      : Service(std::move(services), kInstanceRetries, kInstanceDeadlines) {}
  std::string name() const override { return "the EC2 instance's role"; }

  absl::StatusOr<AwsCredentials> Fetch() override {
    if (absl::EqualsIgnoreCase(Variable("AWS_EC2_METADATA_DISABLED"), "true")) {
      return absl::NotFoundError("AWS_EC2_METADATA_DISABLED is true");
    }
    std::string server = Variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    if (server.empty()) server = "http://169.254.169.254";
    while (absl::EndsWith(server, "/")) server.pop_back();
    const std::string what = absl::StrCat("cannot get the instance's credentials of ", server);
    absl::StatusOr<std::string> token =
        Ask(what, {.method = "PUT",
                   .url = server + "/latest/api/token",
                   .headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}},
                   .use_proxy = false});
    if (absl::IsUnavailable(token.status()) || absl::IsDeadlineExceeded(token.status())) {
      return absl::NotFoundError("nobody answers there");  // no EC2 instance
    }
    // Other clouds answer at this address too, and an instance whose service is switched off.
    if (absl::IsPermissionDenied(token.status()) || absl::IsNotFound(token.status()) ||
        absl::IsInternal(token.status())) {
      return absl::NotFoundError(
          absl::StrCat("no token is given there: ", token.status().message()));
    }
    HETERO_RETURN_IF_ERROR(token.status());
    const std::string folder = server + "/latest/meta-data/iam/security-credentials/";
    const HttpRequest ask{.headers = {{"X-aws-ec2-metadata-token", *token}}, .use_proxy = false};
    HttpRequest ask_role = ask;
    ask_role.url = folder;
    absl::StatusOr<std::string> role = Ask(what, std::move(ask_role));
    if (absl::IsNotFound(role.status())) return absl::NotFoundError("the instance has no role");
    HETERO_RETURN_IF_ERROR(role.status());
    absl::StripAsciiWhitespace(&*role);
    HttpRequest ask_keys = ask;
    ask_keys.url = folder + EscapeUrl(*role, /*keep_slashes=*/false);
    HETERO_ASSIGN_OR_RETURN(const std::string reply, Ask(what, std::move(ask_keys)));
    absl::StatusOr<AwsCredentials> credentials = ReadCredentialJson(reply);
    if (!credentials.ok()) return In(what, credentials.status());
    return credentials;
  }
};

}  // namespace

std::unique_ptr<CredentialSource> WebIdentityCredentials(CredentialServices services) {
  return std::make_unique<WebIdentity>(std::move(services));
}

std::unique_ptr<CredentialSource> ContainerCredentials(CredentialServices services) {
  return std::make_unique<Container>(std::move(services));
}

std::unique_ptr<CredentialSource> InstanceCredentials(CredentialServices services) {
  return std::make_unique<Instance>(std::move(services));
}

}  // namespace hetero::storage
