#include "tests/integration/storage/web_identity.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "runtime/storage/http/url.h"
#include "tests/integration/storage/s3_server.h"
#include "tests/support/temporary_folder.h"

namespace hetero::storage {
namespace {

using Request = kube::ScriptedServer::Request;
using Connection = kube::ScriptedServer::Connection;

// A field of a form or of a query; empty where there is none.
std::string FieldOf(const std::string& form, const std::string& name) {
  for (const absl::string_view pair : absl::StrSplit(form, '&')) {
    const std::pair<std::string, std::string> field = absl::StrSplit(pair, absl::MaxSplits('=', 1));
    if (field.first == name) return UnescapeForm(field.second).value_or("");
  }
  return "";
}

std::string HeaderOf(const Request& request, const std::string& name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "" : found->second;
}

std::string Refusal(const std::string& code, const std::string& message) {
  return absl::StrCat("<ErrorResponse><Error><Code>", code, "</Code><Message>", message,
                      "</Message></Error></ErrorResponse>");
}

std::string ETag(int version) { return absl::StrCat("ETag: \"", version, "\"\r\n"); }

// A reply to HEAD says how long its body would be.
void Reply(const Request& request, Connection& connection, int status, const std::string& body,
           const std::string& headers = "") {
  if (request.method != "HEAD") return connection.Respond(status, body, headers);
  connection.Write(absl::StrCat("HTTP/1.1 ", status, " Scripted\r\nContent-Length: ", body.size(),
                                "\r\n", headers, "\r\n"));
}

void Refuse(const Request& request, Connection& connection, int status, const std::string& code) {
  Reply(request, connection, status, absl::StrCat("<Error><Code>", code, "</Code></Error>"));
}

}  // namespace

TokenService::TokenService(Options options)
    : options_(std::move(options)),
      server_([this](const auto& request, auto& connection) { Answer(request, connection); },
              {.tls = false, .host = options_.host}) {}

void TokenService::Answer(const Request& request, Connection& connection) {
  if (FieldOf(request.body, "Action") != "AssumeRoleWithWebIdentity") {
    return connection.Respond(400, Refusal("InvalidAction", "It is not known here."));
  }
  const auto [status, text] =
      AssumeRole(FieldOf(request.body, "WebIdentityToken"), FieldOf(request.body, "RoleArn"));
  connection.Respond(status, text);
}

std::pair<int, std::string> TokenService::AssumeRole(const std::string& token,
                                                     const std::string& role) {
  const std::optional<Owner> owner = options_.review(token, kAudience);
  if (!owner.has_value()) {
    return {400, Refusal("InvalidIdentityToken", "The token is not good, or not for this service")};
  }
  {
    const std::lock_guard lock(mutex_);
    tokens_.insert(token);
  }
  if (owner->account != options_.account || role != kRole) {
    return {403,
            Refusal("AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity")};
  }
  const base::WallTime now = base::Clock::Real().WallNow();
  const base::WallTime end =
      now + std::chrono::duration_cast<base::WallTime::duration>(options_.lifetime);
  const std::lock_guard lock(mutex_);
  const std::string session_token = absl::StrCat(S3Server::kSessionToken, grants_.size());
  grants_.push_back({.pod = owner->pod, .given = now, .end = end});
  return {200,
          absl::StrCat(
              "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult>"
              "<Credentials><AccessKeyId>",
              S3Server::kKey, "</AccessKeyId><SecretAccessKey>", S3Server::kSecret,
              "</SecretAccessKey><SessionToken>", session_token, "</SessionToken><Expiration>",
              absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromChrono(end), absl::UTCTimeZone()),
              "</Expiration></Credentials></AssumeRoleWithWebIdentityResult>"
              "</AssumeRoleWithWebIdentityResponse>")};
}

std::set<std::string> TokenService::tokens() const {
  const std::lock_guard lock(mutex_);
  return tokens_;
}

std::set<std::string> TokenService::pods() const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> pods;
  for (const Grant& grant : grants_) {
    if (!grant.pod.empty()) pods.insert(grant.pod);
  }
  return pods;
}

int64_t TokenService::GrantsOf(const std::string& pod) const {
  const std::lock_guard lock(mutex_);
  return std::count_if(grants_.begin(), grants_.end(),
                       [&](const Grant& grant) { return grant.pod == pod; });
}

bool TokenService::OutlivedItsKeys(const std::string& pod) const {
  const std::lock_guard lock(mutex_);
  const Grant* first = nullptr;
  for (const Grant& grant : grants_) {
    if (grant.pod != pod) continue;
    if (first == nullptr) first = &grant;
    if (grant.uses > 0 && grant.given >= first->end) return true;
  }
  return false;
}

std::string TokenService::Describe() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const Grant& grant : grants_) {
    absl::StrAppend(&text, grant.pod, " at ", absl::FormatTime(absl::FromChrono(grant.given)), ": ",
                    grant.uses, " uses\n");
  }
  return text;
}

TokenService::Keys TokenService::Use(const std::string& session_token) {
  absl::string_view ordinal = session_token;
  size_t index = 0;
  const std::lock_guard lock(mutex_);
  if (!absl::ConsumePrefix(&ordinal, S3Server::kSessionToken) ||
      !absl::SimpleAtoi(ordinal, &index) || index >= grants_.size()) {
    return Keys::kUnknown;
  }
  const base::WallTime now = base::Clock::Real().WallNow();
  if (++uses_ == options_.end_after_uses) {
    for (Grant& grant : grants_) grant.end = now;
  }
  Grant& grant = grants_[index];
  if (now >= grant.end) return Keys::kEnded;
  ++grant.uses;
  return Keys::kGood;
}

BucketForTemporaryKeys::BucketForTemporaryKeys(TokenService& keys, const std::string& host)
    : keys_(keys),
      server_([this](const auto& request, auto& connection) { Answer(request, connection); },
              {.tls = false, .host = host}) {}

void BucketForTemporaryKeys::Fill(const std::string& folder, const std::string& prefix) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    Put(prefix + "/" + entry.path().filename().string(),
        testing::ReadFileOrDie(entry.path().string()));
  }
}

std::string BucketForTemporaryKeys::Get(const std::string& key) const {
  const std::optional<Object> object = Find(key);
  return object.has_value() ? object->bytes : "";
}

std::vector<std::string> BucketForTemporaryKeys::Keys() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> keys;
  for (const auto& [key, object] : objects_) keys.push_back(key);
  return keys;
}

void BucketForTemporaryKeys::Put(const std::string& key, std::string bytes) {
  const std::lock_guard lock(mutex_);
  objects_[key] = {std::move(bytes), ++versions_};
}

std::optional<BucketForTemporaryKeys::Object> BucketForTemporaryKeys::Find(
    const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return std::nullopt;
  return found->second;
}

std::string BucketForTemporaryKeys::List(const std::string& prefix) const {
  const std::lock_guard lock(mutex_);
  std::string list = "<ListBucketResult><IsTruncated>false</IsTruncated>";
  for (const auto& [key, object] : objects_) {
    if (!absl::StartsWith(key, prefix)) continue;
    absl::StrAppend(&list, "<Contents><Key>", key, "</Key><Size>", object.bytes.size(),
                    "</Size><ETag>&quot;", object.version, "&quot;</ETag></Contents>");
  }
  return absl::StrCat(list, "</ListBucketResult>");
}

void BucketForTemporaryKeys::Answer(const Request& request, Connection& connection) {
  const std::string authorization = HeaderOf(request, "authorization");
  if (!absl::StrContains(authorization, absl::StrCat("Credential=", S3Server::kKey, "/")) ||
      !absl::StrContains(authorization, absl::StrCat("/", S3Server::kRegion, "/s3/aws4_request"))) {
    return Refuse(request, connection, 403, "InvalidAccessKeyId");
  }
  switch (keys_.Use(HeaderOf(request, "x-amz-security-token"))) {
    case TokenService::Keys::kUnknown:
      return Refuse(request, connection, 400, "InvalidToken");
    case TokenService::Keys::kEnded:
      return Refuse(request, connection, 400, "ExpiredToken");
    case TokenService::Keys::kGood:
      break;
  }
  const std::pair<std::string, std::string> target =
      absl::StrSplit(request.target, absl::MaxSplits('?', 1));
  const std::string path = UnescapeForm(target.first).value_or("");
  absl::string_view key = path;
  if (!absl::ConsumePrefix(&key, "/bucket"))
    return Refuse(request, connection, 404, "NoSuchBucket");
  absl::ConsumePrefix(&key, "/");
  if (key.empty()) {
    return Reply(request, connection, 200, List(FieldOf(target.second, "prefix")));
  }
  if (request.method == "PUT" && target.second.empty()) {
    Put(std::string(key), request.body);
    return Reply(request, connection, 200, "", ETag(Find(std::string(key))->version));
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return Refuse(request, connection, 501, "NotImplemented");
  }
  const std::optional<Object> object = Find(std::string(key));
  if (!object.has_value()) return Refuse(request, connection, 404, "NoSuchKey");
  const std::string& bytes = object->bytes;
  size_t first = 0, last = 0;
  if (sscanf(HeaderOf(request, "range").c_str(), "bytes=%zu-%zu", &first, &last) != 2) {
    return Reply(request, connection, 200, bytes, ETag(object->version));
  }
  if (first > last || last >= bytes.size()) return Refuse(request, connection, 416, "InvalidRange");
  Reply(request, connection, 206, bytes.substr(first, last - first + 1),
        absl::StrCat(ETag(object->version), "Content-Range: bytes ", first, "-", last, "/",
                     bytes.size(), "\r\n"));
}

}  // namespace hetero::storage
