#include "runtime/storage/aws/signing_v4.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace hetero::storage {
namespace {

std::string Hmac(std::string_view key, std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &size);
  return {reinterpret_cast<const char*>(digest), size};
}

// Without spaces around it, and with one in the place of several.
std::string Trimmed(std::string_view value) {
  std::string text(value);
  absl::StripAsciiWhitespace(&text);
  std::string out;
  for (const char c : text) {
    if (c != ' ' || out.empty() || out.back() != ' ') out += c;
  }
  return out;
}

}  // namespace

std::string Sha256Hex(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr);
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest), size});
}

void SignV4(const RequestToSign& request, const AwsCredentials& credentials,
            const SigningScope& scope, base::WallTime now, HttpHeaders* headers) {
  const std::string time =
      absl::FormatTime("%Y%m%dT%H%M%SZ", absl::FromChrono(now), absl::UTCTimeZone());
  const std::string date = time.substr(0, 8);
  headers->emplace_back("x-amz-date", time);
  if (!credentials.session_token.empty()) {
    headers->emplace_back("x-amz-security-token", credentials.session_token);
  }

  std::map<std::string, std::string> by_name;
  for (const auto& [name, value] : *headers) {
    std::string& all = by_name[absl::AsciiStrToLower(name)];
    absl::StrAppend(&all, all.empty() ? "" : ",", Trimmed(value));
  }
  std::string canonical_headers, signed_names;
  for (const auto& [name, value] : by_name) {
    absl::StrAppend(&canonical_headers, name, ":", value, "\n");
    absl::StrAppend(&signed_names, signed_names.empty() ? "" : ";", name);
  }
  const std::string canonical =
      absl::StrCat(request.method, "\n", request.path, "\n", SortedQuery(request.query), "\n",
                   canonical_headers, "\n", signed_names, "\n", request.payload_hash);

  const std::string credential_scope =
      absl::StrCat(date, "/", scope.region, "/", scope.service, "/aws4_request");
  const std::string text =
      absl::StrCat("AWS4-HMAC-SHA256\n", time, "\n", credential_scope, "\n", Sha256Hex(canonical));
  std::string key = "AWS4" + credentials.secret_access_key;
  for (const std::string_view part :
       {std::string_view(date), std::string_view(scope.region), std::string_view(scope.service),
        std::string_view("aws4_request")}) {
    key = Hmac(key, part);
  }
  headers->emplace_back("authorization",
                        absl::StrCat("AWS4-HMAC-SHA256 Credential=", credentials.access_key_id, "/",
                                     credential_scope, ", SignedHeaders=", signed_names,
                                     ", Signature=", absl::BytesToHexString(Hmac(key, text))));
}

}  // namespace hetero::storage
