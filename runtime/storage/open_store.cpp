#include "runtime/storage/open_store.h"

#include <unistd.h>

#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/non_dumpable.h"
#include "base/status_macros.h"
#include "runtime/storage/aws/credential_chain.h"
#include "runtime/storage/aws/credential_variables.h"
#include "runtime/storage/aws/shared_credentials.h"
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

// An entry's authorities vouch for its store, and not for who gives credentials.
StoreOptions WithUsualAuthorities(StoreOptions options) {
  options.ca_bundle.clear();
  return options;
}

// Credentials whose services are asked by a client of their own, which they keep.
class UsualWithClient : public CredentialSource {
 public:
  explicit UsualWithClient(const StoreOptions& options)
      : http_(Client(WithUsualAuthorities(options))),
        source_(UsualCredentials({*http_, *options.clock, options.environment})) {}
  std::string name() const override { return source_->name(); }
  absl::StatusOr<AwsCredentials> Fetch() override { return source_->Fetch(); }

 private:
  const std::unique_ptr<HttpClient> http_;
  const std::unique_ptr<CredentialSource> source_;
};

// A store of this process alone. A child that fork() made has the connections of its parent, on
// which both would read each other's replies, and locks that nobody there will release: it opens
// the store once more, and leaves what it was given as it is.
class StoreOfProcess : public Store {
 public:
  using Open = std::function<absl::StatusOr<std::unique_ptr<Store>>()>;
  StoreOfProcess(std::unique_ptr<Store> store, Open open)
      : process_(getpid()), store_(std::move(store)), open_(std::move(open)) {}
  const std::string& uri() const override { return store_->uri(); }
  bool is_remote() const override { return store_->is_remote(); }
  absl::StatusOr<std::vector<Object>> List(std::string_view prefix) const override {
    HETERO_ASSIGN_OR_RETURN(const Store* const store, Own());
    return store->List(prefix);
  }
  absl::StatusOr<Object> Head(std::string_view name) const override {
    HETERO_ASSIGN_OR_RETURN(const Store* const store, Own());
    return store->Head(name);
  }
  absl::Status Read(const Object& object, int64_t offset, absl::Span<uint8_t> out) const override {
    HETERO_ASSIGN_OR_RETURN(const Store* const store, Own());
    return store->Read(object, offset, out);
  }
  absl::StatusOr<Object> ReadAll(std::string_view name, int64_t limit,
                                 std::vector<uint8_t>* bytes) const override {
    HETERO_ASSIGN_OR_RETURN(const Store* const store, Own());
    return store->ReadAll(name, limit, bytes);
  }

 private:
  absl::StatusOr<const Store*> Own() const {
    if (getpid() == process_) return store_.get();
    if (childs_ == nullptr || childs_process_ != getpid()) {
      HETERO_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, open_());
      childs_.release();  // of a parent that is a child itself
      childs_ = std::move(store);
      childs_process_ = getpid();
    }
    return childs_.get();
  }

  const pid_t process_;
  const std::unique_ptr<Store> store_;
  const Open open_;
  // Touched in children alone, which have one thread.
  mutable std::unique_ptr<Store> childs_;
  mutable pid_t childs_process_ = 0;
};

std::shared_ptr<RenewedCredentials> CredentialsFor(const StoreOptions& options) {
  if (!options.anonymous && !options.keys) {
    return SharedCredentials(*options.clock, options.environment,
                             [&options] { return std::make_unique<UsualWithClient>(options); });
  }
  return std::make_shared<RenewedCredentials>(
      *options.clock, options.anonymous ? AnonymousCredentials()
                                        : VariableCredentials(options.environment, *options.keys));
}

absl::StatusOr<std::unique_ptr<WritableStore>> OpenS3(const std::string& uri,
                                                      const StoreOptions& options) {
  // Also of an anonymous one: its region may stand beside keys, in the profile.
  base::MakeNonDumpable();
  return OpenS3Store(uri, options, Client(options), CredentialsFor(options));
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

RequestFigures RequestsOfProcess() { return RequestMeter::OfProcess(); }

absl::StatusOr<std::unique_ptr<Store>> OpenStore(const std::string& uri,
                                                 const StoreOptions& options) {
  const auto open = [uri, options]() -> absl::StatusOr<std::unique_ptr<Store>> {
    if (absl::StartsWith(uri, "https://") || absl::StartsWith(uri, "http://")) {
      return OpenHttpStore(uri, options, Client(options));
    }
    return OpenWritableStore(uri, options);
  };
  if (absl::StartsWith(uri, "file://")) return open();
  HETERO_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, open());
  return std::make_unique<StoreOfProcess>(std::move(store), open);
}

}  // namespace hetero::storage
