#include "runtime/storage/aws/credential_files.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/atomic_file.h"
#include "base/status_macros.h"

namespace hetero::storage {
namespace {

constexpr int64_t kMostFileBytes = 1 << 20;

using Settings = std::map<std::string, std::string>;

std::string ProfileName(const Environment& environment) {
  std::string name = environment("AWS_PROFILE");
  return name.empty() ? "default" : name;
}

std::string PathOf(const Environment& environment, const char* variable, const char* usual) {
  if (std::string path = environment(variable); !path.empty()) return path;
  const std::string home = environment("HOME");
  return home.empty() ? "" : absl::StrCat(home, "/.aws/", usual);
}

// Nothing where there is no such file.
absl::StatusOr<Profiles> ReadFile(const std::string& path) {
  if (path.empty()) return Profiles();
  const absl::StatusOr<std::string> text = base::ReadFile(path, kMostFileBytes);
  if (absl::IsNotFound(text.status())) return Profiles();
  HETERO_RETURN_IF_ERROR(text.status());
  return ReadProfiles(*text);
}

// Of the profile, from both files; the one for credentials wins.
absl::StatusOr<Settings> ReadProfile(const Environment& environment) {
  const std::string name = ProfileName(environment);
  HETERO_ASSIGN_OR_RETURN(
      Profiles credentials,
      ReadFile(PathOf(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials")));
  HETERO_ASSIGN_OR_RETURN(Profiles config,
                          ReadFile(PathOf(environment, "AWS_CONFIG_FILE", "config")));
  Settings settings = std::move(credentials[name]);
  settings.merge(config[name == "default" ? name : absl::StrCat("profile ", name)]);
  return settings;
}

class FromEnvironment : public CredentialSource {
 public:
  explicit FromEnvironment(Environment environment) : environment_(std::move(environment)) {}
  std::string name() const override { return "AWS_ACCESS_KEY_ID"; }

  absl::StatusOr<AwsCredentials> Fetch() override {
    AwsCredentials credentials{.access_key_id = environment_("AWS_ACCESS_KEY_ID"),
                               .secret_access_key = environment_("AWS_SECRET_ACCESS_KEY"),
                               .session_token = environment_("AWS_SESSION_TOKEN")};
    if (credentials.anonymous()) return absl::NotFoundError("not set");
    if (credentials.secret_access_key.empty()) {
      return absl::InvalidArgumentError("AWS_SECRET_ACCESS_KEY is not set beside it");
    }
    return credentials;
  }

 private:
  const Environment environment_;
};

class FromProfile : public CredentialSource {
 public:
  explicit FromProfile(Environment environment) : environment_(std::move(environment)) {}
  std::string name() const override {
    return absl::StrCat("the profile \"", ProfileName(environment_), "\" of ~/.aws");
  }

  absl::StatusOr<AwsCredentials> Fetch() override {
    HETERO_ASSIGN_OR_RETURN(Settings settings, ReadProfile(environment_));
    const bool known = !settings.empty();
    AwsCredentials credentials{.access_key_id = settings["aws_access_key_id"],
                               .secret_access_key = settings["aws_secret_access_key"],
                               .session_token = settings["aws_session_token"]};
    if (!credentials.anonymous() && !credentials.secret_access_key.empty()) return credentials;
    if (!credentials.anonymous()) {
      return absl::InvalidArgumentError("it has aws_access_key_id but no aws_secret_access_key");
    }
    for (const char* other : {"credential_process", "sso_session", "sso_start_url", "role_arn"}) {
      if (!settings[other].empty()) {
        return absl::UnimplementedError(absl::StrCat(
            "it uses ", other, ", which is not read here; put keys into it, for example those of ",
            "\"aws configure export-credentials\""));
      }
    }
    // Somebody has asked for this one by name.
    if (!known && !environment_("AWS_PROFILE").empty()) {
      return absl::InvalidArgumentError("there is no such profile");
    }
    return absl::NotFoundError("it has no keys");
  }

 private:
  const Environment environment_;
};

}  // namespace

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::string {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? "" : value;
  };
}

std::unique_ptr<CredentialSource> EnvironmentCredentials(Environment environment) {
  return std::make_unique<FromEnvironment>(std::move(environment));
}

std::unique_ptr<CredentialSource> ProfileCredentials(Environment environment) {
  return std::make_unique<FromProfile>(std::move(environment));
}

std::string ProfileSetting(const Environment& environment, const std::string& name) {
  absl::StatusOr<Settings> settings = ReadProfile(environment);
  return settings.ok() ? (*settings)[name] : "";
}

Profiles ReadProfiles(std::string_view text) {
  Profiles profiles;
  Settings* section = nullptr;
  for (absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    // What is indented belongs to a setting that is a group of others.
    const bool indented = absl::StartsWith(line, " ") || absl::StartsWith(line, "\t");
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      const size_t end = line.find(']');
      section = nullptr;
      if (end == absl::string_view::npos) continue;
      const std::vector<std::string> words =
          absl::StrSplit(line.substr(1, end - 1), absl::ByAnyChar(" \t"), absl::SkipEmpty());
      std::string name;
      for (const std::string& word : words) absl::StrAppend(&name, name.empty() ? "" : " ", word);
      section = &profiles[name == "profile default" ? "default" : name];
      continue;
    }
    const size_t equals = line.find('=');
    if (section == nullptr || indented || equals == absl::string_view::npos) continue;
    (*section)[absl::AsciiStrToLower(absl::StripAsciiWhitespace(line.substr(0, equals)))] =
        std::string(absl::StripAsciiWhitespace(line.substr(equals + 1)));
  }
  return profiles;
}

}  // namespace hetero::storage
