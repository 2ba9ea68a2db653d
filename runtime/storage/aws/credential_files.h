#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/storage/aws/credentials.h"

namespace hetero::storage {

// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN.
std::unique_ptr<CredentialSource> EnvironmentCredentials(Environment environment);

// Fixed ones of a profile (AWS_PROFILE, else "default") in AWS_SHARED_CREDENTIALS_FILE
// (~/.aws/credentials) or AWS_CONFIG_FILE (~/.aws/config), which are read each time. A profile that
// takes its credentials from elsewhere (credential_process, SSO, another role) is refused by name.
std::unique_ptr<CredentialSource> ProfileCredentials(Environment environment);

// A setting of the profile, such as "region"; empty where there is none.
std::string ProfileSetting(const Environment& environment, const std::string& name);

// Sections of a file such as ~/.aws/config, and the settings in each: names in lower case, sections
// as "default" and "profile x". Lines that are none are passed over, as the SDKs do.
using Profiles = std::map<std::string, std::map<std::string, std::string>>;
Profiles ReadProfiles(std::string_view text);

}  // namespace hetero::storage
