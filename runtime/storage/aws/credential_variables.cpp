#include "runtime/storage/aws/credential_variables.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hetero::storage {
namespace {

class FromVariables : public CredentialSource {
 public:
  FromVariables(Environment environment, KeyVariables variables)
      : environment_(std::move(environment)), variables_(std::move(variables)) {}
  std::string name() const override { return variables_.secret; }

  absl::StatusOr<AwsCredentials> Fetch() override {
    AwsCredentials credentials{.access_key_id = environment_(variables_.access_key_id),
                               .secret_access_key = environment_(variables_.secret_access_key),
                               .session_token = environment_(variables_.session_token)};
    if (credentials.access_key_id.empty()) return Missing("AWS_ACCESS_KEY_ID");
    if (credentials.secret_access_key.empty()) return Missing("AWS_SECRET_ACCESS_KEY");
    return credentials;
  }

 private:
  absl::Status Missing(absl::string_view key) const {
    return absl::FailedPreconditionError(
        absl::StrCat(variables_.secret, " had no key ", key,
                     " when this pod was started, or was not there; add it to the Secret in the "
                     "job's namespace and start the job again"));
  }

  const Environment environment_;
  const KeyVariables variables_;
};

}  // namespace

std::unique_ptr<CredentialSource> VariableCredentials(Environment environment,
                                                      KeyVariables variables) {
  return std::make_unique<FromVariables>(std::move(environment), std::move(variables));
}

}  // namespace hetero::storage
