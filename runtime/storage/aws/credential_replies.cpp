#include "runtime/storage/aws/credential_replies.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/json_access.h"
#include "base/utf8.h"
#include "runtime/storage/aws/xml.h"

namespace hetero::storage {
namespace {

using nlohmann::json;

absl::StatusOr<AwsCredentials> Checked(AwsCredentials credentials, const std::string& expires) {
  for (const std::string* part :
       {&credentials.access_key_id, &credentials.secret_access_key, &credentials.session_token}) {
    if (part->empty()) {
      return absl::DataLossError("the reply lacks a key id, a secret or a token");
    }
    // They go into headers.
    for (const char c : *part) {
      if (c <= ' ' || c > '~') return absl::DataLossError("the reply has keys that are no keys");
    }
  }
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, expires, &time, &error) ||
      time == absl::InfiniteFuture() || time == absl::InfinitePast()) {
    return absl::DataLossError("the reply does not say when its credentials end");
  }
  credentials.expires =
      std::chrono::time_point_cast<base::WallTime::duration>(absl::ToChronoTime(time));
  return credentials;
}

}  // namespace

absl::StatusOr<AwsCredentials> ReadCredentialJson(std::string_view body) {
  const json reply = json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!reply.is_object()) return absl::DataLossError("the reply is no JSON object");
  const std::string code = base::TextOf(reply, "Code");
  if (!code.empty() && code != "Success") {
    return absl::PermissionDeniedError(absl::StrCat("refused: ", base::ToUtf8(code, 100)));
  }
  return Checked({.access_key_id = base::TextOf(reply, "AccessKeyId"),
                  .secret_access_key = base::TextOf(reply, "SecretAccessKey"),
                  .session_token = base::TextOf(reply, "Token")},
                 base::TextOf(reply, "Expiration"));
}

absl::StatusOr<AwsCredentials> ReadAssumedRole(std::string_view body) {
  const absl::StatusOr<XmlElement> root = ParseXml(body);
  const XmlElement* result = root.ok() ? root->Find("AssumeRoleWithWebIdentityResult") : nullptr;
  const XmlElement* found = result == nullptr ? nullptr : result->Find("Credentials");
  if (found == nullptr) return absl::DataLossError("the reply has no credentials");
  return Checked({.access_key_id = found->TextOf("AccessKeyId"),
                  .secret_access_key = found->TextOf("SecretAccessKey"),
                  .session_token = found->TextOf("SessionToken")},
                 found->TextOf("Expiration"));
}

}  // namespace hetero::storage
