#include "runtime/process/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

namespace hetero::process {
namespace {

using ::testing::HasSubstr;

class IdentityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("HETERO_ROLE", "cpu", 1);
    setenv("HETERO_INDEX", "3", 1);
    setenv("HETERO_INCARNATION", "1700000000000000001", 1);
    setenv("HETERO_HEAD_ADDRESS", "10.0.0.7:7070", 1);
  }
  void TearDown() override {
    for (const char* name :
         {"HETERO_ROLE", "HETERO_INDEX", "HETERO_INCARNATION", "HETERO_HEAD_ADDRESS"}) {
      unsetenv(name);
    }
  }
};

TEST_F(IdentityTest, ComesFromTheEnvironment) {
  const absl::StatusOr<Identity> identity = IdentityFromEnvironment();
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(MemberName(identity->member), "cpu-3");
  EXPECT_EQ(identity->member.incarnation(), 1700000000000000001);
  EXPECT_EQ(identity->head_address, "10.0.0.7:7070");
  EXPECT_FALSE(identity->tls.plain_text);
}

TEST_F(IdentityTest, NamesWhatIsMissingOrMalformed) {
  setenv("HETERO_INDEX", "three", 1);
  EXPECT_THAT(std::string(IdentityFromEnvironment().status().message()), HasSubstr("HETERO_INDEX"));
  setenv("HETERO_INDEX", "0", 1);
  unsetenv("HETERO_HEAD_ADDRESS");
  EXPECT_THAT(std::string(IdentityFromEnvironment().status().message()),
              HasSubstr("HETERO_HEAD_ADDRESS"));
}

TEST(MemberName, HasTheLocalRankWhenThereAreSeveral) {
  v1::Identity identity;
  identity.set_role("gpu");
  identity.set_index(1);
  identity.set_local_rank(2);
  EXPECT_EQ(MemberName(identity), "gpu-1.2");
}

}  // namespace
}  // namespace hetero::process
