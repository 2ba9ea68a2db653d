#include "runtime/storage/aws/credential_chain.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/mutex.h"
#include "runtime/storage/aws/credential_files.h"

namespace hetero::storage {
namespace {

class Chain : public CredentialSource {
 public:
  explicit Chain(std::vector<std::unique_ptr<CredentialSource>> sources)
      : sources_(std::move(sources)) {}

  std::string name() const override { return "the usual places"; }

  absl::StatusOr<AwsCredentials> Fetch() override {
    const base::MutexLock lock(mutex_);
    std::string looked;
    for (const std::unique_ptr<CredentialSource>& source : sources_) {
      if (found_ != nullptr && source.get() != found_) continue;
      absl::StatusOr<AwsCredentials> credentials = source->Fetch();
      if (credentials.ok()) {
        if (found_ == nullptr) log::Info("credentials found", {{"source", source->name()}});
        found_ = source.get();
        return credentials;
      }
      if (!absl::IsNotFound(credentials.status()) || found_ != nullptr) {
        // Nobody may take what is missing here for an object that is.
        const bool missing = absl::IsNotFound(credentials.status());
        return absl::Status(
            missing ? absl::StatusCode::kUnauthenticated : credentials.status().code(),
            absl::StrCat("credentials of ", source->name(), ": ", credentials.status().message()));
      }
      absl::StrAppend(&looked, looked.empty() ? "" : "; ", source->name(), ": ",
                      credentials.status().message());
    }
    return absl::UnauthenticatedError(
        absl::StrCat("no credentials were found (", looked,
                     "); set one of these up, or give anonymous: true in spec.storage for a bucket "
                     "that is open to all"));
  }

 private:
  const std::vector<std::unique_ptr<CredentialSource>> sources_;
  base::Mutex mutex_;
  const CredentialSource* found_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

class Anonymous : public CredentialSource {
 public:
  std::string name() const override { return "nobody"; }
  absl::StatusOr<AwsCredentials> Fetch() override { return AwsCredentials(); }
};

}  // namespace

std::unique_ptr<CredentialSource> CredentialChain(
    std::vector<std::unique_ptr<CredentialSource>> sources) {
  return std::make_unique<Chain>(std::move(sources));
}

std::unique_ptr<CredentialSource> UsualCredentials(const CredentialServices& services) {
  std::vector<std::unique_ptr<CredentialSource>> sources;
  sources.push_back(EnvironmentCredentials(services.environment));
  sources.push_back(ProfileCredentials(services.environment));
  sources.push_back(WebIdentityCredentials(services));
  sources.push_back(ContainerCredentials(services));
  sources.push_back(InstanceCredentials(services));
  return CredentialChain(std::move(sources));
}

std::unique_ptr<CredentialSource> AnonymousCredentials() { return std::make_unique<Anonymous>(); }

}  // namespace hetero::storage
