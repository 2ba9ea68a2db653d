#include "runtime/storage/open_store.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/storage/aws/credential_chain.h"
#include "runtime/storage/file_store.h"
#include "runtime/storage/http/curl_client.h"
#include "runtime/storage/http_store.h"
#include "runtime/storage/s3_store.h"

namespace hetero::storage {
namespace {

std::unique_ptr<HttpClient> Client(const StoreOptions& options) {
  std::string ca_bundle = options.ca_bundle;
  if (ca_bundle.empty()) ca_bundle = options.environment("AWS_CA_BUNDLE");
  return std::make_unique<CurlClient>(CurlClient::Options{.ca_bundle = std::move(ca_bundle)});
}

// Credentials whose services are asked by a client of their own, which they keep.
class UsualWithClient : public CredentialSource {
 public:
  explicit UsualWithClient(const StoreOptions& options)
      : http_(Client(options)),
        source_(UsualCredentials({*http_, *options.clock, options.environment})) {}
  std::string name() const override { return source_->name(); }
  absl::StatusOr<AwsCredentials> Fetch() override { return source_->Fetch(); }

 private:
  const std::unique_ptr<HttpClient> http_;
  const std::unique_ptr<CredentialSource> source_;
};

absl::StatusOr<std::unique_ptr<WritableStore>> OpenS3(const std::string& uri,
                                                      const StoreOptions& options) {
  std::unique_ptr<CredentialSource> credentials;
  if (options.anonymous) {
    credentials = AnonymousCredentials();
  } else {
    credentials = std::make_unique<UsualWithClient>(options);
  }
  return OpenS3Store(uri, options, Client(options), std::move(credentials));
}

}  // namespace

absl::StatusOr<std::unique_ptr<WritableStore>> OpenWritableStore(const std::string& uri,
                                                                 const StoreOptions& options) {
  if (absl::StartsWith(uri, "file://")) {
    const std::string path = uri.substr(sizeof "file://" - 1);
    if (absl::StartsWith(path, "/")) return OpenFileStore(path);
    return absl::InvalidArgumentError(
        absl::StrCat("\"", uri, "\": the path must be absolute; write file:///folder/..."));
  }
  if (absl::StartsWith(uri, "s3://")) return OpenS3(uri, options);
  if (absl::StartsWith(uri, "https://") || absl::StartsWith(uri, "http://")) {
    return absl::UnimplementedError(
        "what begins with https:// is only read; write to file:///folder or s3://bucket/prefix");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", uri,
                   "\" is at no store that is known; write file:///folder, s3://bucket/prefix or "
                   "https://host/path"));
}

absl::StatusOr<std::unique_ptr<Store>> OpenStore(const std::string& uri,
                                                 const StoreOptions& options) {
  if (absl::StartsWith(uri, "https://") || absl::StartsWith(uri, "http://")) {
    return OpenHttpStore(uri, options, Client(options));
  }
  return OpenWritableStore(uri, options);
}

}  // namespace hetero::storage
