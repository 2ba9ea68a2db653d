#include "runtime/storage/aws/credential_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "runtime/storage/aws/credential_chain.h"
#include "tests/support/temporary_folder.h"

namespace hetero::storage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

Environment Of(std::map<std::string, std::string> variables) {
  return [variables](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  };
}

TEST(EnvironmentCredentialsTest, TakesBothKeysOrSaysWhichIsMissing) {
  const auto credentials = EnvironmentCredentials(Of({{"AWS_ACCESS_KEY_ID", "AKID"},
                                                      {"AWS_SECRET_ACCESS_KEY", "S"},
                                                      {"AWS_SESSION_TOKEN", "T"}}))
                               ->Fetch();
  ASSERT_TRUE(credentials.ok());
  EXPECT_EQ(credentials->access_key_id, "AKID");
  EXPECT_EQ(credentials->secret_access_key, "S");
  EXPECT_EQ(credentials->session_token, "T");
  EXPECT_TRUE(absl::IsNotFound(EnvironmentCredentials(Of({}))->Fetch().status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      EnvironmentCredentials(Of({{"AWS_ACCESS_KEY_ID", "AKID"}}))->Fetch().status()));
}

TEST(ProfileTest, ReadsSectionsAsTheSdksDo) {
  Profiles profiles = ReadProfiles(
      "ignored = 1\n# comment\n; other\n[default]\r\nREGION= eu-west-1 \r\ns3 =\n  region = no\n"
      "[profile  big]\naws_access_key_id=AKID=with=equals\n[profile default]\noutput = json\n"
      "no equals\n[broken\nlost = 1\n");
  EXPECT_EQ(profiles["default"]["region"], "eu-west-1");
  EXPECT_EQ(profiles["default"]["output"], "json");
  EXPECT_EQ(profiles["profile big"]["aws_access_key_id"], "AKID=with=equals");
  EXPECT_EQ(profiles.size(), 2);
}

TEST(ProfileCredentialsTest, TheFileForCredentialsWinsOverTheOther) {
  const TemporaryFolder home;
  home.Write(".aws/credentials",
             "[default]\naws_access_key_id = A\naws_secret_access_key = B\n"
             "[other]\naws_access_key_id = C\naws_secret_access_key = D\n");
  home.Write(".aws/config",
             "[default]\naws_access_key_id = X\nregion = r1\n"
             "[profile other]\nregion = r2\naws_session_token = T\n");
  EXPECT_EQ(ProfileCredentials(Of({{"HOME", home.path()}}))->Fetch()->access_key_id, "A");
  const Environment other = Of({{"HOME", home.path()}, {"AWS_PROFILE", "other"}});
  const auto credentials = ProfileCredentials(other)->Fetch();
  EXPECT_EQ(credentials->secret_access_key, "D");
  EXPECT_EQ(credentials->session_token, "T");
  EXPECT_EQ(ProfileSetting(other, "region"), "r2");
  // Read again each time: who renews them writes the file.
  const auto source = ProfileCredentials(Of({{"HOME", home.path()}}));
  EXPECT_EQ(source->Fetch()->secret_access_key, "B");
  home.Write(".aws/credentials", "[default]\naws_access_key_id = A\naws_secret_access_key = N\n");
  EXPECT_EQ(source->Fetch()->secret_access_key, "N");
}

TEST(ProfileCredentialsTest, WhatIsNotReadHereIsRefusedByName) {
  const TemporaryFolder folder;
  const std::string config = folder.Write(
      "config",
      "[profile sso]\nsso_session = corp\n"
      "[profile tool]\ncredential_process = /bin/x --secret\n[profile region]\nregion = r\n");
  const auto fetch = [&](const char* profile) {
    return ProfileCredentials(Of({{"AWS_CONFIG_FILE", config}, {"AWS_PROFILE", profile}}))
        ->Fetch()
        .status();
  };
  EXPECT_THAT(std::string(fetch("sso").message()), HasSubstr("sso_session"));
  EXPECT_THAT(std::string(fetch("tool").message()),
              AllOf(HasSubstr("credential_process"), Not(HasSubstr("--secret"))));
  EXPECT_TRUE(absl::IsNotFound(fetch("region")));
  EXPECT_TRUE(absl::IsInvalidArgument(fetch("none")));
  EXPECT_TRUE(absl::IsNotFound(ProfileCredentials(Of({}))->Fetch().status()));
}

class Fixed : public CredentialSource {
 public:
  Fixed(std::string name, absl::StatusOr<AwsCredentials> answer)
      : name_(std::move(name)), answer_(std::move(answer)) {}
  std::string name() const override { return name_; }
  absl::StatusOr<AwsCredentials> Fetch() override { return answer_; }

 private:
  const std::string name_;
  const absl::StatusOr<AwsCredentials> answer_;
};

TEST(CredentialChainTest, TheFirstThatIsSetUpDecides) {
  const auto chain = [](std::vector<absl::StatusOr<AwsCredentials>> answers) {
    std::vector<std::unique_ptr<CredentialSource>> sources;
    for (auto& answer : answers) {
      sources.push_back(
          std::make_unique<Fixed>("source " + std::to_string(sources.size()), std::move(answer)));
    }
    return CredentialChain(std::move(sources));
  };
  const absl::Status none = absl::NotFoundError("not set");
  const AwsCredentials good{.access_key_id = "AKID"};
  EXPECT_EQ(chain({none, good, absl::InternalError("x")})->Fetch()->access_key_id, "AKID");
  // One that does not work must not lead to somebody else's.
  const absl::Status broken = chain({none, absl::InternalError("broken"), good})->Fetch().status();
  EXPECT_EQ(broken.message(), "credentials of source 1: broken");
  const absl::Status nowhere = chain({none, none})->Fetch().status();
  EXPECT_TRUE(absl::IsUnauthenticated(nowhere));
  EXPECT_THAT(
      std::string(nowhere.message()),
      AllOf(HasSubstr("source 0: not set; source 1: not set"), HasSubstr("anonymous: true")));
}

// A store would say that its object is not there.
TEST(CredentialChainTest, WhatIsGoneLaterIsNoMissingObject) {
  class Once : public CredentialSource {
   public:
    std::string name() const override { return "once"; }
    absl::StatusOr<AwsCredentials> Fetch() override {
      if (std::exchange(first_, false)) return AwsCredentials{.access_key_id = "AKID"};
      return absl::NotFoundError("the instance has no role");
    }

   private:
    bool first_ = true;
  };
  std::vector<std::unique_ptr<CredentialSource>> sources;
  sources.push_back(std::make_unique<Once>());
  const auto chain = CredentialChain(std::move(sources));
  ASSERT_TRUE(chain->Fetch().ok());
  const absl::Status gone = chain->Fetch().status();
  EXPECT_TRUE(absl::IsUnauthenticated(gone)) << gone;
  EXPECT_EQ(gone.message(), "credentials of once: the instance has no role");
}

}  // namespace
}  // namespace hetero::storage
