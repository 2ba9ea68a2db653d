#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/storage/aws/credentials.h"

// Credentials as services hand them out. Errors never have the text in them: it is secret.
namespace hetero::storage {

// JSON with AccessKeyId, SecretAccessKey, Token and Expiration: the instance's and the container's
// endpoints. kDataLoss: it is none, or has no end. kPermissionDenied: its Code is not "Success".
absl::StatusOr<AwsCredentials> ReadCredentialJson(std::string_view body);

// XML of AssumeRoleWithWebIdentity. kDataLoss: it is none, or has no end.
absl::StatusOr<AwsCredentials> ReadAssumedRole(std::string_view body);

}  // namespace hetero::storage
