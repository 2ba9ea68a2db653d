#include "runtime/storage/aws/shared_credentials.h"

#include <unistd.h>

#include <atomic>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/storage/aws/signing_v4.h"

namespace hetero::storage {
namespace {

// All that decides who is asked and what for: credential_files.h, credential_services.h, and the
// authorities who vouch for them.
constexpr const char* kVariables[] = {"HOME",
                                      "AWS_ACCESS_KEY_ID",
                                      "AWS_SECRET_ACCESS_KEY",
                                      "AWS_SESSION_TOKEN",
                                      "AWS_PROFILE",
                                      "AWS_SHARED_CREDENTIALS_FILE",
                                      "AWS_CONFIG_FILE",
                                      "AWS_WEB_IDENTITY_TOKEN_FILE",
                                      "AWS_ROLE_ARN",
                                      "AWS_ROLE_SESSION_NAME",
                                      "AWS_ENDPOINT_URL_STS",
                                      "AWS_REGION",
                                      "AWS_DEFAULT_REGION",
                                      "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                      "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                                      "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                                      "AWS_CONTAINER_AUTHORIZATION_TOKEN",
                                      "AWS_EC2_METADATA_DISABLED",
                                      "AWS_EC2_METADATA_SERVICE_ENDPOINT",
                                      "AWS_CA_BUNDLE"};

struct OfProcess {
  const pid_t process = getpid();
  base::Mutex mutex;
  // By clock and a hash of the values of kVariables, some of which are secrets.
  std::map<std::pair<const base::Clock*, std::string>, std::weak_ptr<RenewedCredentials>> all
      ABSL_GUARDED_BY(mutex);
};

// A child of fork() begins anew: the lock may be held by a thread that it does not have.
OfProcess& ThisProcess() {
  // Not initialised when it is needed first: a fork() may come between.
  static constinit std::atomic<OfProcess*> current{nullptr};
  OfProcess* mine = current.load();
  while (mine == nullptr || mine->process != getpid()) {
    auto* const made = new OfProcess;
    if (current.compare_exchange_strong(mine, made)) return *made;  // the parent's is left as it is
    delete made;
  }
  return *mine;
}

}  // namespace

std::shared_ptr<RenewedCredentials> SharedCredentials(
    base::Clock& clock, const Environment& environment,
    const std::function<std::unique_ptr<CredentialSource>()>& make) {
  std::string values;
  for (const char* variable : kVariables) {
    const std::string value = environment(variable);
    absl::StrAppend(&values, value.size(), ":", value);
  }
  OfProcess& process = ThisProcess();
  const base::MutexLock lock(process.mutex);
  std::weak_ptr<RenewedCredentials>& known = process.all[{&clock, Sha256Hex(values)}];
  std::shared_ptr<RenewedCredentials> shared = known.lock();
  if (shared == nullptr) {
    shared = std::make_shared<RenewedCredentials>(clock, make());
    known = shared;
  }
  return shared;
}

}  // namespace hetero::storage
