#pragma once

#include <memory>
#include <string>

#include "runtime/storage/aws/credentials.h"

namespace hetero::storage {

// Variables that hold the keys of one Secret, AWS_ACCESS_KEY_ID and so on there.
struct KeyVariables {
  std::string secret;  // whose they are, for messages: 'the Secret "keys" of spec.storage[0]'
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;  // not set: the keys are no temporary ones
};

// kFailedPrecondition names the Secret and the key that is missing: somebody else's credentials are
// no substitute.
std::unique_ptr<CredentialSource> VariableCredentials(Environment environment,
                                                      KeyVariables variables);

}  // namespace hetero::storage
