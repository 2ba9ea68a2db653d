#include "runtime/storage/s3_address.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "runtime/storage/aws/credential_files.h"

namespace hetero::storage {
namespace {

bool IsLabel(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
  });
}

std::string FirstOf(const StoreOptions& options, std::string chosen,
                    std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    if (chosen.empty()) chosen = options.environment(variable);
  }
  return chosen;
}

// Where AWS has its servers of a region.
std::string AwsEndpoint(const std::string& region) {
  return absl::StrCat("https://s3.", region, ".amazonaws.com",
                      absl::StartsWith(region, "cn-") ? ".cn" : "");
}

// A host's name whose certificate covers the bucket: it has one label in the place of the star.
bool FitsHostName(const std::string& bucket) {
  return bucket.find_first_of("._") == std::string::npos &&
         std::none_of(bucket.begin(), bucket.end(), absl::ascii_isupper);
}

}  // namespace

std::string S3Address::Path(const std::string& key) const {
  return absl::StrCat(endpoint.path, path_style ? absl::StrCat("/", bucket) : "", "/",
                      EscapeUrl(key, /*keep_slashes=*/true));
}

absl::StatusOr<S3Address> FindS3(const std::string& uri, const StoreOptions& options) {
  const auto refused = [&uri](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("\"", uri, "\": ", why));
  };
  S3Address address;
  absl::string_view rest = uri;
  absl::ConsumePrefix(&rest, "s3://");
  const size_t slash = rest.find('/');
  address.bucket = std::string(rest.substr(0, slash));
  if (!IsLabel(address.bucket) || address.bucket.size() > 255) {
    return refused("there is no bucket; write s3://bucket/prefix");
  }
  absl::string_view prefix = slash == absl::string_view::npos ? "" : rest.substr(slash + 1);
  while (absl::ConsumeSuffix(&prefix, "/")) {
  }
  if (!prefix.empty()) address.prefix = absl::StrCat(prefix, "/");
  address.uri = absl::StrCat("s3://", address.bucket, prefix.empty() ? "" : "/", prefix);

  address.region = FirstOf(options, options.region, {"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (address.region.empty()) address.region = ProfileSetting(options.environment, "region");
  if (address.region.empty()) address.region = "us-east-1";
  if (!IsLabel(address.region)) return refused("the region is no name");

  const std::string own =
      FirstOf(options, options.endpoint, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  absl::StatusOr<Url> endpoint = ParseUrl(own.empty() ? AwsEndpoint(address.region) : own);
  if (!endpoint.ok()) return refused(absl::StrCat("its endpoint: ", endpoint.status().message()));
  address.endpoint = *std::move(endpoint);
  address.path_style = options.path_style.value_or(!own.empty() || !FitsHostName(address.bucket));
  if (!address.path_style) {
    address.endpoint.authority = absl::StrCat(address.bucket, ".", address.endpoint.authority);
  }
  return address;
}

}  // namespace hetero::storage
