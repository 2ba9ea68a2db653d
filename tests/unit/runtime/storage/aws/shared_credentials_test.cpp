#include "runtime/storage/aws/shared_credentials.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>

#include "base/fake_clock.h"

namespace hetero::storage {
namespace {

class NumberedCredentials : public CredentialSource {
 public:
  explicit NumberedCredentials(int* fetched) : fetched_(fetched) {}
  std::string name() const override { return "the test"; }
  absl::StatusOr<AwsCredentials> Fetch() override {
    return AwsCredentials{.access_key_id = std::to_string(++*fetched_), .secret_access_key = "s"};
  }

 private:
  int* const fetched_;
};

class SharedCredentialsTest : public ::testing::Test {
 protected:
  std::shared_ptr<RenewedCredentials> Share(const std::map<std::string, std::string>& environment) {
    return SharedCredentials(
        clock_,
        [environment](const std::string& name) {
          const auto found = environment.find(name);
          return found == environment.end() ? std::string() : found->second;
        },
        [this] { return std::make_unique<NumberedCredentials>(&fetched_); });
  }
  static std::string KeyOf(RenewedCredentials& credentials) {
    return (*credentials.Get())->access_key_id;
  }

  base::FakeClock clock_;
  int fetched_ = 0;
};

TEST_F(SharedCredentialsTest, OneAsksForAllThatLookInTheSamePlaces) {
  const auto dataset = Share({{"AWS_ROLE_ARN", "trainer"}, {"LANG", "C"}});
  const auto output = Share({{"AWS_ROLE_ARN", "trainer"}, {"LANG", "de"}});
  EXPECT_EQ(KeyOf(*dataset), "1");
  EXPECT_EQ(KeyOf(*output), "1");
  dataset->Expired(**dataset->Get());
  EXPECT_EQ(KeyOf(*output), "2");
  EXPECT_EQ(KeyOf(*dataset), "2");
}

TEST_F(SharedCredentialsTest, OtherRolesAreOthers) {
  const auto one = Share({{"AWS_ROLE_ARN", "trainer"}});
  const auto other = Share({{"AWS_ROLE_ARN", "reader"}});
  // Values that look alike when they are written one behind the other.
  const auto shifted = Share({{"AWS_ROLE_SESSION_NAME", "trainer"}});
  EXPECT_EQ(KeyOf(*one), "1");
  EXPECT_EQ(KeyOf(*other), "2");
  EXPECT_EQ(KeyOf(*shifted), "3");
}

TEST_F(SharedCredentialsTest, WithTheLastStoreTheyEnd) {
  EXPECT_EQ(KeyOf(*Share({})), "1");
  EXPECT_EQ(KeyOf(*Share({})), "2");
}

TEST_F(SharedCredentialsTest, AChildOfForkAsksForItself) {
  const auto parents = Share({});
  EXPECT_EQ(KeyOf(*parents), "1");
  const pid_t child = fork();
  if (child == 0) _exit(KeyOf(*Share({})) == "2" ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child went on with its parent's";
  EXPECT_EQ(KeyOf(*parents), "1");
}

}  // namespace
}  // namespace hetero::storage
